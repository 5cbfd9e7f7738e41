#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "muster/result.h"
#include "store/opensearch_cluster.h"
#include "store/opensearch_records.h"

namespace muster {

// One conditional write of one document.
struct BulkAction {
  enum class Op { kCreate, kUpdate, kDelete };
  Op op = Op::kCreate;
  std::string id;
  DocumentVersion version = {};  // what it must still be; not for kCreate: it must not be there
  Json fields = {};              // the document, or what is changed of it
  bool answer_source = false;    // kUpdate: have the whole document in the answer
};

// What became of it.
struct BulkResult {
  enum class Kind { kApplied, kConflict, kFailed };
  Kind kind = Kind::kFailed;
  DocumentVersion version = {};  // kApplied: the new one
  Json source = {};              // kApplied, if asked for
  Error error = {};              // kFailed: kUnknownOutcome, or else not applied
};

// Sends the actions in as few requests as their size allows, and those that an overloaded node
// turned down again for a while. Answers in the order of `actions`. `alias` must be one: a missing
// index is an error and not created.
std::vector<BulkResult> SendBulk(OpenSearchCluster& client, Env& env, const std::string& alias,
                                 const std::vector<BulkAction>& actions);

// Why not all could be decided: that nothing was applied, if it is so, else that it is not known.
// Not an error: every result is kApplied or kConflict.
Status FailureOf(const std::vector<BulkResult>& results);

}  // namespace muster
