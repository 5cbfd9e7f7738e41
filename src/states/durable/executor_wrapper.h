#pragma once

#include <utility>
#include <vector>

#include "muster/task.h"

namespace muster::states {

// Forwards each call to the first of several executors that runs its resource; they must outlive
// it. Derive, and override what differs.
class ExecutorWrapper : public TaskExecutor {
 public:
  explicit ExecutorWrapper(std::vector<TaskExecutor*> inner) : inner_(std::move(inner)) {}

  bool Runs(std::string_view resource) const override { return Find(resource) != nullptr; }
  TaskOutcome Start(const TaskCall& call, TaskContext& context) override {
    return Find(call.resource)->Start(call, context);
  }
  TaskOutcome Poll(const TaskCall& call, const Json& resume, TaskContext& context) override {
    return Find(call.resource)->Poll(call, resume, context);
  }
  void Cancel(const TaskCall& call, const Json& resume, TaskContext& context) override {
    Find(call.resource)->Cancel(call, resume, context);
  }
  Status BeginRun(const std::string& run) override {
    for (TaskExecutor* executor : inner_) MUSTER_TRY(executor->BeginRun(run));
    return {};
  }
  // All of them, even if one fails; the answer is the first failure.
  Status EndRun(const std::string& run) override {
    Status ended;
    for (TaskExecutor* executor : inner_) {
      Status one = executor->EndRun(run);
      if (ended) ended = std::move(one);
    }
    return ended;
  }

 private:
  TaskExecutor* Find(std::string_view resource) const {
    for (TaskExecutor* executor : inner_) {
      if (executor->Runs(resource)) return executor;
    }
    return nullptr;
  }

  const std::vector<TaskExecutor*> inner_;
};

}  // namespace muster::states
