#pragma once

#include <cstdint>
#include <map>
#include <stop_token>
#include <string>
#include <vector>

#include "core/json.h"
#include "muster/env.h"
#include "muster/result.h"
#include "task/data/load_fence.h"
#include "task/data/staging.h"

namespace muster::task {

// What a script should have loaded; see reconcile_executor.h.
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
  OnWait on_wait = {};
};

struct Reconciled {
  Json counts;                          // the task's result
  std::vector<std::string> mismatches;  // missing or surplus rows
  std::vector<std::string> orphans;     // rows without parents
};

// Counts and compares rows.
Result<Reconciled> Reconcile(const ReconcileJob& job, Env& env, const std::stop_token& stop);

// The parent table named in a message about a violated foreign key; empty: none.
std::string ParentIn(const std::string& message);

// ": rank 2600 loads feed.posts" if the rank that loads the parent is known, else empty. `parent`
// is written as by PostgreSQL or SQLite.
std::string LoaderOf(const std::string& parent, const std::map<std::string, int64_t>& references);

}  // namespace muster::task
