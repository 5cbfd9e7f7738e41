#pragma once

#include "cli/progress.h"
#include "muster/states.h"

namespace muster::cli {

// Forwards calls, and shows the outcome of a plan's tasks to people. Thread-safe; arguments must
// outlive it.
class WatchedExecutor final : public states::ExecutorWrapper {
 public:
  WatchedExecutor(states::TaskExecutor& executor, Progress& progress)
      : ExecutorWrapper({&executor}), progress_(progress) {}

  states::TaskOutcome Start(const states::TaskCall& call, states::TaskContext& context) override;
  states::TaskOutcome Poll(const states::TaskCall& call, const Json& resume,
                           states::TaskContext& context) override;

 private:
  states::TaskOutcome Report(const states::TaskCall& call, states::TaskOutcome outcome);

  Progress& progress_;
};

}  // namespace muster::cli
