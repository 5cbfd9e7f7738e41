#pragma once

#include "cli/progress.h"
#include "states/executor_wrapper.h"

namespace muster::cli {

// Forwards calls, and shows the outcome of a plan's tasks to people. Thread-safe; arguments must
// outlive it.
class WatchedExecutor final : public states::ExecutorWrapper {
 public:
  WatchedExecutor(TaskExecutor& executor, Progress& progress)
      : ExecutorWrapper({&executor}), progress_(progress) {}

  TaskOutcome Start(const TaskCall& call, TaskContext& context) override;
  TaskOutcome Poll(const TaskCall& call, const Json& resume, TaskContext& context) override;

 private:
  TaskOutcome Report(const TaskCall& call, TaskOutcome outcome);

  Progress& progress_;
};

}  // namespace muster::cli
