#pragma once

#include "cli/progress.h"
#include "muster/task.h"

namespace muster::cli {

// Passes calls on, and tells people what has become of the tasks of a plan. Safe to use from any
// thread; what it is given must outlive it.
class WatchedExecutor final : public TaskExecutor {
 public:
  WatchedExecutor(TaskExecutor& executor, Progress& progress)
      : executor_(executor), progress_(progress) {}

  bool Runs(std::string_view resource) const override { return executor_.Runs(resource); }
  TaskOutcome Start(const TaskCall& call, TaskContext& context) override;
  TaskOutcome Poll(const TaskCall& call, const Json& resume, TaskContext& context) override;
  void Cancel(const TaskCall& call, const Json& resume, TaskContext& context) override;

 private:
  TaskOutcome Told(const TaskCall& call, TaskOutcome outcome);

  TaskExecutor& executor_;
  Progress& progress_;
};

}  // namespace muster::cli
