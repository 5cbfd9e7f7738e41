#include "cli/metered_executor.h"

#include "core/log.h"

namespace muster::cli {

states::TaskOutcome MeteredExecutor::Report(const states::TaskCall& call,
                                            states::TaskOutcome outcome, MonoTime start,
                                            states::TaskContext& context) {
  const char* name = std::holds_alternative<states::TaskSuccess>(outcome)   ? "succeeded"
                     : std::holds_alternative<states::TaskFailure>(outcome) ? "failed"
                                                                            : "pending";
  const auto took = context.env().MonoNow() - start;
  metrics_
      .GetCounter("muster_task_outcomes_total", "Answers to calls of tasks",
                  {{"resource", call.resource}, {"outcome", name}})
      .Add();
  metrics_
      .GetHistogram("muster_task_call_seconds", "How long calls of tasks take",
                    {0.01, 0.1, 1, 10, 60, 600, 3600}, {{"resource", call.resource}})
      .Observe(std::chrono::duration<double>(took).count());
  const auto* failure = std::get_if<states::TaskFailure>(&outcome);
  const std::string why = failure == nullptr ? "" : failure->error + ": " + failure->cause;
  const std::string rank = call.part ? std::to_string(call.part->rank) : std::string();
  const WallTime now = context.env().WallNow();
  tracer_.Add({.name = call.state,
               .trace = call.execution,
               .itself = call.token + std::to_string(now.time_since_epoch().count()),
               .parent = call.execution,
               .start = now - std::chrono::duration_cast<std::chrono::milliseconds>(took),
               .end = now,
               .attributes = {{"muster.run", call.execution},
                              {"muster.rank", rank},
                              {"muster.task", call.state},
                              {"muster.resource", call.resource},
                              {"muster.outcome", name}},
               .error = why});
  // WatchedExecutor is for people.
  Log(Level::kInfo, "task called",
      {{"run", call.execution},
       {"rank", rank},
       {"task", call.state},
       {"resource", call.resource},
       {"outcome", std::string_view(name)},
       {"why", why}});
  return outcome;
}

states::TaskOutcome MeteredExecutor::Start(const states::TaskCall& call,
                                           states::TaskContext& context) {
  const MonoTime start = context.env().MonoNow();
  return Report(call, ExecutorWrapper::Start(call, context), start, context);
}

states::TaskOutcome MeteredExecutor::Poll(const states::TaskCall& call, const Json& resume,
                                          states::TaskContext& context) {
  const MonoTime start = context.env().MonoNow();
  return Report(call, ExecutorWrapper::Poll(call, resume, context), start, context);
}

}  // namespace muster::cli
