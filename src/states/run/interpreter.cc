#include "states/run/interpreter.h"

#include "states/run/interpreter_scope.h"

namespace muster::states {
Interpreter::Interpreter(std::shared_ptr<const Definition> definition, ExecutionInfo info, Env& env,
                         JsonataEngine* jsonata, EventLog& log)
    : definition_(std::move(definition)),
      info_(std::move(info)),
      env_(env),
      jsonata_(jsonata),
      log_(log) {}

const State& Interpreter::StateOf(const Flow& flow) const {
  return definition_->machines[static_cast<size_t>(flow.machine)].states.find(flow.state)->second;
}

int64_t Interpreter::Add(Flow& flow, std::string type, std::string name, Value payload,
                         const Failure& failure, Json details) {
  Event event{.previous = flow.last_event,
              .type = std::move(type),
              .time = env_.WallNow(),
              .name = std::move(name),
              .payload = std::move(payload),
              .error = failure.error,
              .cause = failure.cause,
              .details = std::move(details)};
  flow.last_event = log_.Add(std::move(event));
  return flow.last_event;
}

Flow Interpreter::Begin() {
  Flow flow;
  flow.state = definition_->machines.front().start_at;
  flow.input = info_.input;
  Add(flow, "ExecutionStarted", {}, flow.input);
  return flow;
}

void Interpreter::Run(Flow& flow) {
  while (!flow.ended() && !flow.inside) {
    // The last event is reserved for the end of the execution.
    if (log_.count() >= kMaxEvents - 2) {
      flow.wants = Wants::kNothing;
      flow.status = FlowStatus::kFailed;
      flow.failure = {
          .error = kRuntime,
          .cause = "The execution reached the maximum number of history events (25000).",
          .internal = false};
      return;
    }
    Enter(flow);
  }
}

void Interpreter::Enter(Flow& flow) {
  const State& state = StateOf(flow);
  flow.inside = true;
  flow.wants = Wants::kNothing;
  ++flow.entry;
  flow.retry_count = 0;
  flow.retrier_counts.assign(state.retry.size(), 0);
  flow.entered_time = env_.WallNow();
  flow.entered_event = Add(flow, EventType(state, "Entered"), state.name, flow.input);
  Attempt(flow);
}

void Interpreter::Attempt(Flow& flow) {
  switch (StateOf(flow).type) {
    case StateType::kTask:
      return AttemptTask(flow);
    case StateType::kPass:
    case StateType::kSucceed:
      return RunPass(flow);
    case StateType::kChoice:
      return RunChoice(flow);
    case StateType::kWait:
      return RunWait(flow);
    case StateType::kFail:
      return RunFail(flow);
    case StateType::kParallel:
      return AttemptParallel(flow);
    case StateType::kMap:
      return AttemptMap(flow);
  }
}

Fallible<Value> Interpreter::EffectiveInput(const Flow& flow) const {
  const State& state = StateOf(flow);
  if (state.input_path.null) return EmptyObject();
  if (!state.input_path.query) return flow.input;
  const ScopeHolder scope(*this, flow, flow.input.get());
  auto found = state.input_path.query->Find(*scope);
  if (!found)
    return RuntimeFailure("Invalid path '" + state.input_path.query->text + "' : " + found.error());
  return MakeValue(*std::move(found));
}

void Interpreter::TimerFired(Flow& flow) {
  flow.due.reset();
  flow.wants = Wants::kNothing;
  if (flow.backing_off) {
    flow.backing_off = false;
    return Attempt(flow);
  }
  auto input = EffectiveInput(flow);
  if (!input) return StateFailed(flow, std::move(input).error());
  Complete(flow, *input, *input);
}

Fallible<void> Interpreter::CheckSize(const Flow& flow, const Json& value) const {
  if (JsonBytes(value, kMaxPayloadBytes) <= kMaxPayloadBytes) return {};
  return Unexpected(Failure{
      .error = kDataLimitExceeded,
      .cause =
          "The state/task '" + flow.state +
          "' returned a result with a size exceeding the maximum number of bytes service limit.",
      .internal = false});
}

void Interpreter::Complete(Flow& flow, const Value& result, const Value& assign_input) {
  const State& state = StateOf(flow);
  const bool has_result = state.type == StateType::kTask || state.type == StateType::kParallel ||
                          state.type == StateType::kMap;
  Variables assigned;
  if (state.assign) {
    ScopeHolder scope(*this, flow, state.jsonata ? flow.input.get() : assign_input.get());
    if (has_result) scope->result = result.get();
    auto variables = state.assign->EvaluateMembers(*scope);
    if (!variables) return StateFailed(flow, std::move(variables).error());
    assigned = *std::move(variables);
  }
  auto output =
      state.jsonata ? OutputByJsonata(flow, result, has_result) : OutputByPaths(flow, result);
  if (!output) return StateFailed(flow, std::move(output).error());
  if (*output != flow.input) {
    if (auto small = CheckSize(flow, **output); !small)
      return StateFailed(flow, std::move(small).error());
  }
  Leave(flow, *std::move(output), assigned, state.next);
}

Fallible<Value> Interpreter::OutputByJsonata(const Flow& flow, const Value& result,
                                             bool has_result) const {
  const State& state = StateOf(flow);
  if (!state.output) return result;
  ScopeHolder scope(*this, flow, flow.input.get());
  if (has_result) scope->result = result.get();
  return state.output->Evaluate(*scope);
}

Fallible<Value> Interpreter::OutputByPaths(const Flow& flow, const Value& result) const {
  const State& state = StateOf(flow);
  Value output = result;
  if (state.result_selector) {
    const ScopeHolder scope(*this, flow, result.get());
    STATES_ASSIGN(output, state.result_selector->Evaluate(*scope));
  }
  if (state.result_path.null) {
    output = flow.input;
  } else if (state.result_path.path) {
    STATES_ASSIGN(output, PutAt(*state.result_path.path, flow.input, *output));
  }
  const ScopeHolder scope(*this, flow, output.get());
  return SelectOutput(state, scope, output);
}

Fallible<Value> Interpreter::SelectOutput(const State& state, const ScopeHolder& scope,
                                          Value output) {
  if (state.output_path.null) return EmptyObject();
  if (!state.output_path.query) return output;
  auto found = state.output_path.query->Find(*scope);
  if (!found) {
    return RuntimeFailure("Invalid path '" + state.output_path.query->text +
                          "' : " + found.error());
  }
  return MakeValue(*std::move(found));
}

void Interpreter::Leave(Flow& flow, Value output, const Variables& assigned,
                        const std::string& next) {
  const State& state = StateOf(flow);
  Json details;
  if (!assigned.empty()) {
    details = {{"assignedVariables", Json::object()}};
    for (const auto& [name, value] : assigned)
      details["assignedVariables"][name] = ToJsonText(*value);
  }
  Add(flow, EventType(state, "Exited"), state.name, output, {}, std::move(details));
  for (const auto& [name, value] : assigned) flow.variables[name] = value;
  flow.inside = false;
  flow.wants = Wants::kNothing;
  flow.task.reset();
  flow.children.reset();
  flow.results.reset();
  flow.due.reset();
  const bool ends = next.empty();
  flow.input = output;
  if (!ends) {
    flow.state = next;
    return;
  }
  flow.output = std::move(output);
  flow.status = FlowStatus::kSucceeded;
}

void Interpreter::FlowFailed(Flow& flow, Failure failure) {
  flow.wants = Wants::kNothing;
  flow.status = FlowStatus::kFailed;
  flow.failure = std::move(failure);
}

void Interpreter::Abort(Flow& flow) {
  if (flow.ended()) return;
  if (flow.inside) {
    const State& state = StateOf(flow);
    const bool has_event = state.type == StateType::kTask || state.type == StateType::kWait ||
                           state.type == StateType::kMap || state.type == StateType::kParallel;
    if (has_event) Add(flow, EventType(state, "Aborted"));
  }
  flow.wants = Wants::kNothing;
  flow.task.reset();
  flow.due.reset();
  flow.status = FlowStatus::kAborted;
}

void Interpreter::End(Flow& root) {
  switch (root.status) {
    case FlowStatus::kSucceeded:
      Add(root, "ExecutionSucceeded", {}, root.output);
      break;
    case FlowStatus::kFailed:
      Add(root, "ExecutionFailed", {}, {}, root.failure);
      break;
    case FlowStatus::kTimedOut:
      Add(root, "ExecutionTimedOut", {}, {}, root.failure);
      break;
    case FlowStatus::kAborted:
      Add(root, "ExecutionAborted", {}, {}, root.failure);
      break;
    case FlowStatus::kRunning:
    case FlowStatus::kUnreadable:
      break;
  }
}

}  // namespace muster::states
