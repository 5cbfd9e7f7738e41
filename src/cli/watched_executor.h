#pragma once

#include "cli/progress.h"
#include "states/executor_wrapper.h"

namespace muster::cli {

// Passes calls on, and tells people what has become of the tasks of a plan. Safe to use from any
// thread; what it is given must outlive it.
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
