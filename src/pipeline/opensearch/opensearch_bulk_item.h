#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "muster/result.h"

namespace muster::pipeline {

// What a cluster answers about one document of a bulk request.
struct BulkItem {
  int64_t status = 0;
  bool is_dropped = false;  // by an ingest pipeline: nothing was written
  std::string type = {};    // of the error; empty: none
  std::string reason = {};
  std::string index = {};  // where it was created, with the number of that change
  int64_t seq_no = -1;
  int64_t primary_term = -1;
};

// The items of a response, in the order of the request. None: all were accepted; with `all`, there
// are items also then. An error: it is unreadable.
Result<std::optional<std::vector<BulkItem>>> ReadBulkItems(const std::string& answer, bool all);

Error ErrorOf(const std::string& index, const BulkItem& item);

// Two documents introduced the same field with conflicting types and this one came second: with the
// mapping as it is now, it may well be accepted.
bool LostAMappingRace(const BulkItem& item);

// The target is a data stream, to which documents can only be added.
bool IsOfDataStream(const BulkItem& item);

// From "… version conflict, current version [7] is higher than the one provided [5]"; 0: not found.
int64_t CurrentVersion(const std::string& reason);

}  // namespace muster::pipeline
