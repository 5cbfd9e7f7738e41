#pragma once

#include <memory>
#include <vector>

#include "muster/states.h"
#include "states/run/interpreter.h"

namespace muster::states {

struct RunResult {
  FlowStatus status = FlowStatus::kRunning;
  Value output;
  Failure failure;
  std::vector<Event> events;
};

// Runs one execution to its end in memory, one call at a time. Waits use the Env: with a VirtualEnv
// they take no time. A call that waits for a callback gets the call's own answer as the callback's.
RunResult RunInMemory(std::shared_ptr<const Definition> definition, ExecutionInfo info, Env& env,
                      JsonataEngine* jsonata, TaskExecutor& executor, std::stop_token stop = {});

// The call of a flow for an executor. `state`: the flow's current one.
TaskCall CallOf(const Flow& flow, const State& state, const ExecutionInfo& info, WallTime now);

}  // namespace muster::states
