// When a state fails: retriers, catchers, the end of the flow.

#include <algorithm>
#include <cmath>

#include "core/planted_bug.h"
#include "states/run/interpreter_scope.h"

namespace muster::states {

bool MatchesError(const std::vector<std::string>& names, const Failure& failure) {
  // As on AWS, it cannot be caught, not even by its name.
  if (failure.error == kRuntime) return false;
  return std::any_of(names.begin(), names.end(), [&](const std::string& name) {
    if (name == failure.error || name == "States.ALL") return true;
    return name == kTaskFailed && failure.error != kTimeout;
  });
}

void Interpreter::StateFailed(Flow& flow, Failure failure) {
  const State& state = StateOf(flow);
  flow.wants = Wants::kNothing;
  flow.task.reset();
  flow.children.reset();
  flow.due.reset();
  if (failure.internal) {
    failure.cause = "An error occurred while executing the state '" + state.name +
                    "' (entered at the event id #" + std::to_string(flow.entered_event) + "). " +
                    failure.cause;
    failure.internal = false;
    if (failure.error == kQueryError) {
      Json details = {{"state", state.name}};
      if (!failure.location.empty()) details["location"] = failure.location;
      Add(flow, "EvaluationFailed", {}, {}, failure, std::move(details));
    }
  }
  if (Retry(flow, failure)) return;
  const bool many = state.type == StateType::kMap || state.type == StateType::kParallel;
  if (many && failure.error != kRuntime) Add(flow, EventType(state, "Failed"), {}, {}, failure);
  if (Catch(flow, failure)) return;
  FlowFailed(flow, std::move(failure));
}

bool Interpreter::Retry(Flow& flow, const Failure& failure) {
  const State& state = StateOf(flow);
  flow.retrier_counts.resize(state.retry.size());
  for (size_t i = 0; i < state.retry.size(); ++i) {
    const Retrier& retrier = state.retry[i];
    if (!MatchesError(retrier.errors, failure)) continue;
    int64_t& count = flow.retrier_counts[i];
    if (count >= retrier.max_attempts && !PLANTED_BUG(attempts_are_not_limited)) return false;
    const double rate = PLANTED_BUG(backoff_does_not_grow) ? 1.0 : retrier.backoff_rate;
    double delay = retrier.interval_s * std::pow(rate, static_cast<double>(count));
    if (PLANTED_BUG(retries_do_not_wait)) delay = 0;
    delay = std::min({delay, retrier.max_delay_s.value_or(31'622'400.0), 31'622'400.0});
    if (retrier.full_jitter) {
      delay *= static_cast<double>(env_.Random() >> 11) * 0x1.0p-53;
    }
    ++count;
    ++flow.retry_count;
    flow.backing_off = true;
    flow.due = env_.WallNow() + std::chrono::milliseconds(static_cast<int64_t>(delay * 1000));
    flow.wants = Wants::kTimer;
    return true;
  }
  return false;
}

bool Interpreter::Catch(Flow& flow, const Failure& failure) {
  const State& state = StateOf(flow);
  for (const Catcher& catcher : state.catchers) {
    if (!MatchesError(catcher.errors, failure)) continue;
    const Json error_output = {{"Error", failure.error}, {"Cause", failure.cause}};
    ScopeHolder scope(*this, flow, state.jsonata ? flow.input.get() : &error_output);
    scope->error_output = &error_output;
    Variables assigned;
    Value output = MakeValue(error_output);
    const auto fail = [&](Failure inner) {
      inner.cause = "An error occurred while executing the state '" + state.name +
                    "' (entered at the event id #" + std::to_string(flow.entered_event) + "). " +
                    inner.cause;
      if (inner.error == kQueryError)
        Add(flow, "EvaluationFailed", {}, {}, inner,
            {{"state", state.name}, {"location", inner.location}});
      FlowFailed(flow, std::move(inner));
      return true;
    };
    if (catcher.assign) {
      auto variables = catcher.assign->EvaluateMembers(*scope);
      if (!variables) return fail(std::move(variables).error());
      assigned = *std::move(variables);
    }
    if (catcher.output) {
      auto evaluated = catcher.output->Evaluate(*scope);
      if (!evaluated) return fail(std::move(evaluated).error());
      output = *std::move(evaluated);
    } else if (catcher.result_path.null) {
      output = flow.input;
    } else if (catcher.result_path.path) {
      auto combined = PutAt(*catcher.result_path.path, flow.input, error_output);
      if (!combined) return fail(std::move(combined).error());
      output = *std::move(combined);
    }
    Leave(flow, std::move(output), assigned, catcher.next);
    return true;
  }
  return false;
}

}  // namespace muster::states
