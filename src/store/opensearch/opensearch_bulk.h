#pragma once

#include <string>
#include <vector>

#include "core/json.h"
#include "muster/result.h"
#include "store/opensearch/opensearch_cluster.h"
#include "store/opensearch/opensearch_records.h"

namespace muster::store {

// A conditional write of one document.
struct BulkAction {
  enum class Op { kCreate, kUpdate, kDelete };
  Op op = Op::kCreate;
  std::string id;
  DocumentVersion version = {};  // its required version; kCreate requires that it does not exist
  Json fields = {};              // the document, or the changed fields
  bool answer_source = false;    // kUpdate: return the whole document
};

// The outcome.
struct BulkResult {
  enum class Kind { kApplied, kConflict, kFailed };
  Kind kind = Kind::kFailed;
  DocumentVersion version = {};  // kApplied: the new one
  Json source = {};              // kApplied, if requested
  Error error = {};              // kFailed: kUnknownOutcome, or not applied
};

// Sends the actions in as few requests as their size allows, and retries those that an overloaded
// node rejected. Results are in the order of `actions`. `alias` must be one: a missing index is an
// error and not created.
std::vector<BulkResult> SendBulk(OpenSearchCluster& client, Env& env, const std::string& alias,
                                 const std::vector<BulkAction>& actions);

// Why some are undecided: nothing was applied, if that is certain, otherwise unknown. Success:
// every result is kApplied or kConflict.
Status FailureOf(const std::vector<BulkResult>& results);

}  // namespace muster::store
