#pragma once

#include <map>
#include <optional>
#include <string>

#include "core/metrics.h"
#include "core/mutex.h"
#include "muster/env.h"
#include "muster/replica.h"
#include "net/tracer.h"

namespace muster::cli {

// Reports what the workers of a replica set do: as metrics (muster_replica_events_total by kind,
// muster_replica_barrier_seconds from ready to running, muster_replica_pause_seconds of slots), as
// traces, where each worker's barriers and generations are spans of the set's trace, and as logs.
// Arguments must outlive it. Thread-safe.
class MeteredEvents {
 public:
  MeteredEvents(std::string set, Metrics& metrics, net::Tracer& tracer, Env& env);

  void Take(const replica::ReplicaEvent& event);

 private:
  // A worker's current stage and its start.
  struct Stage {
    replica::ReplicaEvent::Kind kind = replica::ReplicaEvent::Kind::kRegistered;
    int64_t generation = 0;
    MonoTime since{};
    WallTime since_wall{};
  };

  std::optional<Stage> Enter(const replica::ReplicaEvent& event);
  void Trace(const replica::ReplicaEvent& event, const Stage& stage);

  const std::string set_;
  Metrics& metrics_;
  net::Tracer& tracer_;
  Env& env_;
  Metrics::Histogram barrier_;
  Metrics::Histogram pause_;
  Mutex mutex_;
  std::map<std::string, Stage> stages_ GUARDED_BY(mutex_);  // by worker
};

}  // namespace muster::cli
