#pragma once

#include <memory>
#include <vector>

#include "muster/task.h"
#include "states/run/interpreter.h"

namespace muster::states {

struct RunResult {
  FlowStatus status = FlowStatus::kRunning;
  Value output;
  Failure failure;
  std::vector<Event> events;
};

// Runs one execution from its beginning to its end in memory, one call at a time. Nothing is
// stored. Waits are the Env's: with a VirtualEnv they take no time. Whoever waits for a callback is
// taken to have got it with the answer of the call.
RunResult RunInMemory(std::shared_ptr<const Definition> definition, ExecutionInfo info, Env& env,
                      JsonataEngine* jsonata, TaskExecutor& executor, std::stop_token stop = {});

// What an executor is told about a call. `state` is the one that the flow is in.
TaskCall CallOf(const Flow& flow, const State& state, const ExecutionInfo& info, WallTime now);

}  // namespace muster::states
