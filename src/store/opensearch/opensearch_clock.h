#pragma once

#include "muster/env.h"
#include "muster/result.h"
#include "store/opensearch/opensearch_cluster.h"
#include "store/server_clock.h"

namespace muster::store {

// A cluster's clock: its manager's, read once a minute. If node statistics are not permitted, the
// clock behind the Date header. Thread-safe; both arguments must outlive it.
class OpenSearchClock {
 public:
  OpenSearchClock(OpenSearchCluster& client, Env& env) : client_(client), env_(env) {}

  // kPermission: neither is available. kUnavailable: not accurate enough right now.
  Result<ServerClock::Reading> Read();

  // Reads it now.
  Status Measure();

 private:
  OpenSearchCluster& client_;
  Env& env_;
  ServerClock clock_;
};

}  // namespace muster::store
