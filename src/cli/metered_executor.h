#pragma once

#include <vector>

#include "base/metrics.h"
#include "base/tracer.h"
#include "states/executor_wrapper.h"

namespace muster::cli {

// Passes calls on to those that can make them, and tells of them in metrics
// (muster_task_outcomes_total by resource and outcome, muster_task_call_seconds), traces and logs.
// Safe to use from any thread; what it is given must outlive it.
class MeteredExecutor final : public states::ExecutorWrapper {
 public:
  MeteredExecutor(std::vector<TaskExecutor*> executors, Metrics& metrics, Tracer& tracer)
      : ExecutorWrapper(std::move(executors)), metrics_(metrics), tracer_(tracer) {}

  TaskOutcome Start(const TaskCall& call, TaskContext& context) override;
  TaskOutcome Poll(const TaskCall& call, const Json& resume, TaskContext& context) override;

 private:
  TaskOutcome Report(const TaskCall& call, TaskOutcome outcome, MonoTime start,
                     TaskContext& context);

  Metrics& metrics_;
  Tracer& tracer_;
};

}  // namespace muster::cli
