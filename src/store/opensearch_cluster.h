#pragma once

#include <cstddef>
#include <mutex>
#include <string>

#include "base/json.h"
#include "base/opensearch.h"
#include "muster/env.h"
#include "muster/result.h"

namespace muster {

struct ClusterRequest {
  std::string method = "GET";
  std::string target;     // "/index/_search?..."
  std::string body = {};  // JSON, or lines of it
  bool writes = false;
};

struct ClusterAnswer {
  int status = 0;
  Json body;  // null where the answer was no JSON

  std::string ErrorType() const;  // "index_not_found_exception"; empty: OpenSearch said none
};

// Speaks to a cluster for a store. What was certainly not applied is tried again, a few times
// within two seconds: a connection that was refused, a node that is overloaded or not ready.
// Thread-safe; `env` must outlive it.
class OpenSearchCluster {
 public:
  OpenSearchCluster(OpenSearchEndpoint endpoint, Env& env);

  // Any complete answer, whatever its status, unless trying again may help.
  Result<ClusterAnswer> Send(const ClusterRequest& request);

  // The body of an answer of a status below 300; all others are errors, see Refusal.
  Result<Json> Call(const ClusterRequest& request);

  // One request that is not repeated, as it came.
  Result<OpenSearchAnswer> SendOnce(const ClusterRequest& request);

  // RefusalOf, but that an index is gone is believed only when it has been said for a while: a
  // cluster that has just been started does not know its indices yet. Until then: kUnavailable.
  Error Refusal(int status, const Json& error, bool writes, std::string_view alias);

  const OpenSearchEndpoint& endpoint() const { return endpoint_; }

 private:
  const OpenSearchEndpoint endpoint_;
  Env& env_;
  OpenSearchClient client_;
  std::mutex mutex_;  // guards what follows
  MonoTime missed_first_ = MonoTime::min();
  MonoTime missed_last_ = MonoTime::min();
};

// What a refusal means. `error` is what OpenSearch says is wrong, {"type", "reason"}, of a whole
// request or of one item of a _bulk; null where somebody else answered in its place. `alias` is
// what the request named the index by; empty: it named none.
Error RefusalOf(int status, const Json& error, bool writes, std::string_view alias = {});

// A member of a JSON object; null if there is none, or it is no object.
const Json& MemberOf(const Json& object, const char* name);

// The same as a text or number; empty or 0 if it is none.
std::string TextOf(const Json& object, const char* name);
int64_t NumberOf(const Json& object, const char* name);

}  // namespace muster
