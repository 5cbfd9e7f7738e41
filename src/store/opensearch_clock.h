#pragma once

#include "muster/env.h"
#include "muster/result.h"
#include "store/opensearch_cluster.h"
#include "store/server_clock.h"

namespace muster {

// The clock of a cluster: its manager's, which is asked once a minute. Where statistics of nodes
// may not be read, it is the clock of whoever sends the Date header. Thread-safe; both arguments
// must outlive it.
class OpenSearchClock {
 public:
  OpenSearchClock(OpenSearchCluster& client, Env& env) : client_(client), env_(env) {}

  // kPermission: neither is to be had. kUnavailable: not known well enough at the moment.
  Result<ServerClock::Reading> Read();

  // Asks the cluster now.
  Status Measure();

 private:
  OpenSearchCluster& client_;
  Env& env_;
  ServerClock clock_;
};

}  // namespace muster
