// States without calls or branches: Pass, Succeed, Choice, Wait, Fail.

#include <cmath>

#include "core/planted_bug.h"
#include "core/timestamp.h"
#include "states/run/interpreter_scope.h"

namespace muster::states {

void Interpreter::RunPass(Flow& flow) {
  const State& state = StateOf(flow);
  auto input = EffectiveInput(flow);
  if (!input) return StateFailed(flow, std::move(input).error());
  Value result = *std::move(input);
  if (state.parameters) {
    const ScopeHolder scope(*this, flow, result.get());
    auto parameters = state.parameters->Evaluate(*scope);
    if (!parameters) return StateFailed(flow, std::move(parameters).error());
    result = *std::move(parameters);
  }
  if (state.result) result = state.result;
  Complete(flow, result, result);
}

void Interpreter::RunChoice(Flow& flow) {
  const State& state = StateOf(flow);
  auto input = EffectiveInput(flow);
  if (!input) return StateFailed(flow, std::move(input).error());
  ScopeHolder scope(*this, flow, input->get());
  const std::string* next = &state.default_next;
  const std::optional<Template>* assign = &state.assign;
  const std::optional<Template>* output = &state.output;
  for (const ChoiceRule& rule : state.choices) {
    auto holds = rule.condition.Holds(*scope);
    if (!holds) return StateFailed(flow, std::move(holds).error());
    if (!*holds) continue;
    next = &rule.next;
    assign = &rule.assign;
    output = &rule.output;
    break;
  }
  if (next->empty()) {
    return StateFailed(flow, {.error = "States.NoChoiceMatched",
                              .cause = "Failed to transition out of the state. The state '" +
                                       state.name + "' does not point to a next state."});
  }
  Variables assigned;
  if (*assign) {
    auto variables = (*assign)->EvaluateMembers(*scope);
    if (!variables) return StateFailed(flow, std::move(variables).error());
    assigned = *std::move(variables);
  }
  Value result = *input;
  if (*output) {
    auto evaluated = (*output)->Evaluate(*scope);
    if (!evaluated) return StateFailed(flow, std::move(evaluated).error());
    result = *std::move(evaluated);
  } else {
    auto selected = SelectOutput(state, scope, std::move(result));
    if (!selected) return StateFailed(flow, std::move(selected).error());
    result = *std::move(selected);
  }
  Leave(flow, std::move(result), assigned, *next);
}

void Interpreter::RunWait(Flow& flow) {
  const State& state = StateOf(flow);
  auto input = EffectiveInput(flow);
  if (!input) return StateFailed(flow, std::move(input).error());
  ScopeHolder scope(*this, flow, input->get());
  const Computed& computed = state.seconds ? state.seconds : state.timestamp;
  const bool is_path = computed.query && !state.jsonata;
  Json value;
  if (computed.literal) {
    value = *computed.literal;
  } else if (is_path) {
    auto found = computed.query->Find(*scope);
    if (!found) {
      return StateFailed(
          flow, {.error = kRuntime,
                 .cause = "The " + computed.field +
                          " parameter does not reference an input value: " + computed.query->text});
    }
    value = *std::move(found);
  } else {
    auto evaluated = computed.query->Evaluate(*scope, computed.field);
    if (!evaluated) return StateFailed(flow, std::move(evaluated).error());
    value = *std::move(evaluated);
  }
  const std::string shown = value.is_string() ? value.get<std::string>() : ToJsonText(value);
  const auto fail = [&](const std::string& path_words, const std::string& jsonata_words) {
    if (is_path)
      return StateFailed(flow, {.error = kRuntime,
                                .cause = "The " + computed.field + " parameter " + path_words +
                                         ": " + computed.query->text + " == " + shown});
    return StateFailed(flow,
                       {.error = kQueryError,
                        .cause = "The " + computed.field + " field " + jsonata_words + ": " + shown,
                        .location = computed.field});
  };
  if (state.seconds) {
    if (!value.is_number_integer() &&
        !(value.is_number() && std::floor(value.get<double>()) == value.get<double>())) {
      return fail("cannot be parsed as a long value", "cannot be parsed as a long value");
    }
    if (value.get<double>() < 0)
      return fail("references a negative value", "references a negative value");
    if (value.get<double>() > 99'999'999)
      return fail("references a value greater than 99999999", "is greater than 99999999");
    flow.due = env_.WallNow() + std::chrono::seconds(value.get<int64_t>());
  } else {
    const auto time = value.is_string() ? ParseTimestamp(shown) : std::nullopt;
    if (!time) {
      return fail("does not reference a valid ISO-8601 extended offset date-time format string",
                  "cannot be parsed as an ISO-8601 extended offset date-time format string");
    }
    flow.due = time->ToWallTime();
  }
  if (PLANTED_BUG(timers_are_skipped) || *flow.due <= env_.WallNow()) return TimerFired(flow);
  flow.wants = Wants::kTimer;
}

void Interpreter::RunFail(Flow& flow) {
  const State& state = StateOf(flow);
  ScopeHolder scope(*this, flow, flow.input.get());
  Failure failure{.internal = false};
  for (const auto& [computed, target] :
       {std::pair{&state.error, &failure.error}, std::pair{&state.cause, &failure.cause}}) {
    if (computed->literal) *target = computed->literal->get<std::string>();
    if (!computed->query) continue;
    auto value = computed->query->Evaluate(*scope, computed->field);
    if (!value) return StateFailed(flow, std::move(value).error());
    if (!value->is_string()) {
      if (!state.jsonata) {
        return StateFailed(
            flow, {.error = kRuntime,
                   .cause = "The " + computed->field +
                            " parameter does not reference a string: " + computed->query->text});
      }
      return StateFailed(
          flow, {.error = kQueryError,
                 .cause = "The JSONata expression '" + computed->query->text +
                          "' specified for the field '" + computed->field +
                          "' returned an unexpected result type. Expected 'string', but was '" +
                          std::string(JsonataType(*value)) + "' for value: " + ToJsonText(*value),
                 .location = computed->field});
    }
    *target = value->get<std::string>();
  }
  FlowFailed(flow, std::move(failure));
}

}  // namespace muster::states
