#pragma once

#include <vector>

#include "base/metrics.h"
#include "base/tracer.h"
#include "states/executor_wrapper.h"

namespace muster::cli {

// Forwards calls to the executors, and reports them as metrics (muster_task_outcomes_total by
// resource and outcome, muster_task_call_seconds), traces and logs. Thread-safe; arguments must
// outlive it.
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
