#pragma once

#include <string>

#include "muster/result.h"

namespace muster::net {

// A response with a status of 300 or more, or an item that a _bulk refused.
struct OpenSearchRefusal {
  int status = 0;
  std::string type = {};    // "cluster_block_exception"; empty: not given, or not from OpenSearch
  std::string reason = {};  // in the server's words
};

// What a refusal means, for stores, sources and sinks alike:
//   kReadOnly        an index or cluster block rejects writes, a disk is past its flood stage, the
//                    index is closed, or an alias has no write index
//   kPermission      401, 403; 3xx, 405, 407: something other than the cluster answers
//   kNotFound 404    kConflict 409    kFull: too many shards    kInvalid: other 4xx
//   kUnavailable     429; 408, 5xx and a closed index for a read; 503 for a write if OpenSearch
//                    itself answers
//   kUnknownOutcome  otherwise 408 and 5xx for a write
// The message is what happened, without the name of the server; the hint is what to do about it.
Error OpenSearchError(const OpenSearchRefusal& refusal, bool writes);

}  // namespace muster::net
