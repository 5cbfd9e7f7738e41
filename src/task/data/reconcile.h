#pragma once

#include <cstdint>
#include <map>
#include <stop_token>
#include <string>
#include <vector>

#include "core/json.h"
#include "muster/result.h"
#include "task/data/staging.h"

namespace muster::task {

// What a script should have loaded, as in reconcile_executor.h.
struct ExpectedLoad {
  std::string script;
  std::string schema;
  std::string table;
  std::map<std::string, std::string> counts = {};  // table → object
  std::map<std::string, int64_t> references = {};  // "schema.table" → the rank that loads it
};

struct ReconcileJob {
  Staging staging;
  std::string target;
  Json extracted;    // by object
  Json transformed;  // by script
  std::vector<ExpectedLoad> scripts;
};

struct Reconciled {
  Json counts;                          // the task's result
  std::vector<std::string> mismatches;  // rows that are missing or too many
  std::vector<std::string> orphans;     // rows whose parents are missing
};

// Counts and compares.
Result<Reconciled> Reconcile(const ReconcileJob& job, const std::stop_token& stop);

// The table that lacks a row, of all that the message about a violated foreign key speaks of;
// empty: it names none.
std::string ParentIn(const std::string& message);

// ": rank 2600 loads feed.posts" if a rank is known to load the parent, as some database writes its
// name; else empty.
std::string LoaderOf(const std::string& parent, const std::map<std::string, int64_t>& references);

}  // namespace muster::task
