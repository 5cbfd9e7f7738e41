#pragma once

#include <cstddef>
#include <string>

#include "core/json.h"
#include "core/json_fields.h"
#include "core/mutex.h"
#include "muster/env.h"
#include "muster/result.h"
#include "net/opensearch.h"

namespace muster::store {

struct ClusterRequest {
  std::string method = "GET";
  std::string target;     // "/index/_search?..."
  std::string body = {};  // JSON, or lines of it
  bool writes = false;
};

struct ClusterAnswer {
  int status = 0;
  Json body;  // null if the response was not JSON

  std::string ErrorType() const;  // "index_not_found_exception"; empty: none given
};

// A store's connection to a cluster. Requests that were certainly not applied are retried a few
// times within two seconds: refused connections, nodes that are overloaded or not ready.
// Thread-safe; `env` must outlive it.
class OpenSearchCluster {
 public:
  OpenSearchCluster(net::OpenSearchEndpoint endpoint, Env& env);

  // Any complete response, whatever its status, unless a retry may help.
  Result<ClusterAnswer> Send(const ClusterRequest& request);

  // The body of a response with a status below 300; otherwise an error, see Refusal.
  Result<Json> Call(const ClusterRequest& request);

  // A single request without retries.
  Result<net::OpenSearchAnswer> SendOnce(const ClusterRequest& request);

  // RefusalOf, except that a missing index is only believed after a while: a cluster that just
  // started does not know its indices yet. Until then: kUnavailable.
  Error Refusal(int status, const Json& error, bool writes, std::string_view alias);

  const net::OpenSearchEndpoint& endpoint() const { return endpoint_; }

 private:
  const net::OpenSearchEndpoint endpoint_;
  Env& env_;
  net::OpenSearchClient client_;
  Mutex mutex_;
  MonoTime missed_first_ GUARDED_BY(mutex_) = MonoTime::min();
  MonoTime missed_last_ GUARDED_BY(mutex_) = MonoTime::min();
};

// The meaning of a refusal. `error` is OpenSearch's {"type", "reason"}, for a whole request or one
// item of a _bulk; null if something else responded. `alias` is the request's name for the index;
// empty: none.
Error RefusalOf(int status, const Json& error, bool writes, std::string_view alias = {});

}  // namespace muster::store
