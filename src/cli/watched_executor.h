#pragma once

#include <vector>

#include "cli/progress.h"
#include "muster/task.h"

namespace muster::cli {

// Passes calls on to those that can make them, and tells people what has become of the tasks of a
// plan. Safe to use from any thread; what it is given must outlive it.
class WatchedExecutor final : public TaskExecutor {
 public:
  WatchedExecutor(std::vector<TaskExecutor*> executors, Progress& progress)
      : executors_(std::move(executors)), progress_(progress) {}

  bool Runs(std::string_view resource) const override { return Find(resource) != nullptr; }
  TaskOutcome Start(const TaskCall& call, TaskContext& context) override;
  TaskOutcome Poll(const TaskCall& call, const Json& resume, TaskContext& context) override;
  void Cancel(const TaskCall& call, const Json& resume, TaskContext& context) override;

 private:
  TaskExecutor* Find(std::string_view resource) const;
  TaskOutcome Told(const TaskCall& call, TaskOutcome outcome);

  std::vector<TaskExecutor*> executors_;
  Progress& progress_;
};

}  // namespace muster::cli
