#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sim/simulation.h"

namespace muster::sim {

// A scenario: real code on simulated services, and its invariants.
class Workload {
 public:
  virtual ~Workload() = default;

  // Adds its processes to a new simulation. Invariants are checked while it runs.
  virtual void Setup(Simulation& sim) = 0;

  // After everything has ended: checks the final state.
  virtual void Check() = 0;
};

struct WorkloadInfo {
  std::string_view name;
  std::string_view about;
  std::unique_ptr<Workload> (*create)();
  std::vector<std::string> sometimes;  // what must have happened over many seeds
  uint64_t seeds = 2'000;              // how many the suite runs
  int small_worlds = 5;                // how many small runs are crashed at every call
  int64_t small_world = 200;           // maximum calls of a run that is crashed at each of them
};

const std::vector<WorkloadInfo>& Workloads();

// Workers share a migration, on the real work and pipeline code, into a sink with or without
// fences.
WorkloadInfo WorkWorkload();

// Workers of a replica set join, leave and die while they follow an event log.
WorkloadInfo ReplicaWorkload();

// Processes drive executions of a state machine with branches, retries, timers and callbacks.
WorkloadInfo StatesWorkload();

// People run, resume, edit and cancel plans that fail on the way.
WorkloadInfo PlanWorkload();

}  // namespace muster::sim
