#pragma once

#include <vector>

#include "core/metrics.h"
#include "net/tracer.h"
#include "states/states.h"

namespace muster::cli {

// Forwards calls to the executors, and reports them as metrics (muster_task_outcomes_total by
// resource and outcome, muster_task_call_seconds), traces and logs. Thread-safe; arguments must
// outlive it.
class MeteredExecutor final : public states::ExecutorWrapper {
 public:
  MeteredExecutor(std::vector<states::TaskExecutor*> executors, Metrics& metrics,
                  net::Tracer& tracer)
      : ExecutorWrapper(std::move(executors)), metrics_(metrics), tracer_(tracer) {}

  states::TaskOutcome Start(const states::TaskCall& call, states::TaskContext& context) override;
  states::TaskOutcome Poll(const states::TaskCall& call, const Json& resume,
                           states::TaskContext& context) override;

 private:
  states::TaskOutcome Report(const states::TaskCall& call, states::TaskOutcome outcome,
                             MonoTime start, states::TaskContext& context);

  Metrics& metrics_;
  net::Tracer& tracer_;
};

}  // namespace muster::cli
