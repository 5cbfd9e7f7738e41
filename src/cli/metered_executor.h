#pragma once

#include "core/metrics.h"
#include "muster/states.h"
#include "net/tracer.h"

namespace muster::cli {

// Forwards calls to an executor, and reports them as metrics (muster_task_outcomes_total by
// resource and outcome, muster_task_call_seconds), traces and logs. Thread-safe; arguments must
// outlive it.
class MeteredExecutor final : public states::ExecutorWrapper {
 public:
  MeteredExecutor(states::TaskExecutor& executor, Metrics& metrics, net::Tracer& tracer)
      : ExecutorWrapper({&executor}), metrics_(metrics), tracer_(tracer) {}

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
