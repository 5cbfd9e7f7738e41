#include "states/run/interpreter.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "core/planted_bug.h"
#include "states/asl/timestamp.h"
#include "states/run/interpreter_scope.h"

namespace muster::states {
namespace {

const Value& EmptyObject() {
  static const Value kEmpty = MakeValue(Json::object());
  return kEmpty;
}

std::string EventType(const State& state, std::string_view what) {
  return std::string(TypeName(state.type)) + "State" + std::string(what);
}

// What a resource is, as the events of its calls show it.
struct ResourceParts {
  std::string_view prefix;  // of the event types: Task, LambdaFunction, Activity
  Json details;
  bool submitted;  // accepted first, done later
};

ResourceParts PartsOf(const std::string& resource) {
  constexpr std::string_view kIntegration = "arn:aws:states:::";
  if (resource.find(":lambda:") != std::string::npos && resource.starts_with("arn:") &&
      resource.find(":function:") != std::string::npos) {
    return {"LambdaFunction", {{"resource", resource}}, false};
  }
  if (resource.starts_with("arn:") && resource.find(":activity:") != std::string::npos) {
    return {"Activity", {{"resource", resource}}, false};
  }
  const bool submitted =
      resource.find(".sync") != std::string::npos || resource.ends_with(".waitForTaskToken");
  std::string name = resource;
  if (name.starts_with(kIntegration)) name = name.substr(kIntegration.size());
  const size_t colon = name.rfind(':', name.find('.'));
  Json details = {{"resourceType", colon == std::string::npos ? name : name.substr(0, colon)},
                  {"resource", colon == std::string::npos ? name : name.substr(colon + 1)}};
  return {"Task", std::move(details), submitted};
}

size_t TextBytes(const std::string& text) {
  size_t bytes = text.size() + 2;
  for (const char c : text) {
    if (c == '"' || c == '\\' || c == '\n' || c == '\t' || c == '\r') ++bytes;
  }
  return bytes;
}

}  // namespace

size_t JsonBytes(const Json& value, size_t limit) {
  switch (value.type()) {
    case Json::Type::kString:
      return TextBytes(value.get_ref<const std::string&>());
    case Json::Type::kObject: {
      size_t bytes = 1;
      for (const auto& [key, member] : value.items()) {
        bytes += TextBytes(key) + 2 + JsonBytes(member, limit);
        if (bytes > limit) break;
      }
      return std::max<size_t>(bytes, 2);
    }
    case Json::Type::kArray: {
      size_t bytes = 1;
      for (const Json& element : value) {
        bytes += 1 + JsonBytes(element, limit);
        if (bytes > limit) break;
      }
      return std::max<size_t>(bytes, 2);
    }
    case Json::Type::kNull:
    case Json::Type::kBoolean:
      return value.is_boolean() && !value.get<bool>() ? 5 : 4;
    default:
      return value.dump().size();
  }
}

bool MatchesError(const std::vector<std::string>& names, const Failure& failure) {
  // AWS lets nobody catch it, not even by its name.
  if (failure.error == kRuntime) return false;
  return std::any_of(names.begin(), names.end(), [&](const std::string& name) {
    if (name == failure.error || name == "States.ALL") return true;
    return name == kTaskFailed && failure.error != kTimeout;
  });
}

Interpreter::Interpreter(std::shared_ptr<const Definition> definition, ExecutionInfo info, Env& env,
                         JsonataEngine* jsonata, EventLog& log)
    : definition_(std::move(definition)),
      info_(std::move(info)),
      env_(env),
      jsonata_(jsonata),
      log_(log) {}

const Json& Interpreter::ScopeHolder::Context(bool whole) {
  if (!context_) context_ = MakeContext();
  if (whole && !is_whole_) {
    if (scope_.execution_input != nullptr)
      (*context_)["Execution"]["Input"] = *scope_.execution_input;
    is_whole_ = true;
  }
  return *context_;
}

// With an empty input of the execution.
Json Interpreter::ScopeHolder::MakeContext() const {
  const ExecutionInfo& info = interpreter_.info_;
  const std::string machine =
      "arn:aws:states:us-east-1:111111111111:stateMachine:" + info.machine_name;
  Json context = {
      {"Execution",
       {{"Id",
         "arn:aws:states:us-east-1:111111111111:execution:" + info.machine_name + ":" + info.name},
        {"Input", Json::object()},
        {"Name", info.name},
        {"RoleArn", "arn:aws:iam::111111111111:role/muster"},
        {"StartTime", FormatTimestamp(info.start)},
        {"RedriveCount", info.redrive_count}}},
      {"StateMachine", {{"Id", machine}, {"Name", info.machine_name}}},
      {"State", {{"EnteredTime", FormatTimestamp(flow_.entered_time)}, {"Name", flow_.state}}}};
  const State& state = interpreter_.StateOf(flow_);
  if (state.type == StateType::kTask || state.type == StateType::kMap ||
      state.type == StateType::kParallel) {
    context["State"]["RetryCount"] = flow_.retry_count;
  }
  if (flow_.map_index) {
    Json& item = context["Map"]["Item"];
    item["Index"] = *flow_.map_index;
    item["Value"] = flow_.map_value ? *flow_.map_value : Json();
  }
  if (!token_.empty()) context["Task"] = {{"Token", token_}};
  return context;
}

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
    // The last event is kept free for the end of the execution.
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
  } else if (state.output_path.null) {
    result = EmptyObject();
  } else if (state.output_path.query) {
    auto found = state.output_path.query->Find(*scope);
    if (!found) {
      return StateFailed(flow, {.error = kRuntime,
                                .cause = "Invalid path '" + state.output_path.query->text +
                                         "' : " + found.error()});
    }
    result = MakeValue(*std::move(found));
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

Fallible<std::optional<int64_t>> Interpreter::Number(const Computed& computed,
                                                     const ScopeHolder& scope) const {
  if (computed.literal) return computed.literal->get<int64_t>();
  if (!computed.query) return std::optional<int64_t>{};
  if (computed.query->kind == Query::Kind::kJsonata) {
    STATES_ASSIGN(const Json value, computed.query->Evaluate(*scope, computed.field));
    if (value.is_number() && std::floor(value.get<double>()) == value.get<double>())
      return value.get<int64_t>();
    return Unexpected(
        Failure{.error = kQueryError,
                .cause = "The JSONata expression '" + computed.query->text +
                         "' specified for the field '" + computed.field +
                         "' returned an unexpected result type. Expected 'integer', but was '" +
                         std::string(JsonataType(value)) + "' for value: " + ToJsonText(value),
                .location = computed.field});
  }
  auto found = computed.query->Find(*scope);
  if (!found)
    return RuntimeFailure("Invalid path '" + computed.query->text + "' : " + found.error());
  if (found->is_string()) {
    // A number in quotes will do.
    const auto& text = found->get_ref<const std::string&>();
    int64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error == std::errc() && end == text.data() + text.size()) return number;
  }
  if (!found->is_number_integer()) {
    const std::string shown = found->is_string() ? found->get<std::string>() : ToJsonText(*found);
    return RuntimeFailure("The " + computed.field + " field refers to value \"" + shown +
                          "\" which is not a valid integer: " + computed.query->text);
  }
  return found->get<int64_t>();
}

void Interpreter::AttemptTask(Flow& flow) {
  const State& state = StateOf(flow);
  auto input = EffectiveInput(flow);
  if (!input) return StateFailed(flow, std::move(input).error());
  TaskProgress task;
  task.resource = state.resource;
  task.input = *input;
  task.token = info_.name + ":" + flow.path + ":" + std::to_string(flow.entry) + ":" +
               std::to_string(flow.retry_count);
  ScopeHolder scope(*this, flow, input->get());
  if (state.resource.ends_with(".waitForTaskToken")) scope.set_token(task.token);
  if (state.parameters) {
    auto parameters = state.parameters->Evaluate(*scope);
    if (!parameters) return StateFailed(flow, std::move(parameters).error());
    task.input = *std::move(parameters);
  }
  if (state.credentials) {
    auto credentials = state.credentials->Evaluate(*scope);
    if (!credentials) return StateFailed(flow, std::move(credentials).error());
    task.credentials = *std::move(credentials);
  }
  auto timeout = Number(state.timeout, scope);
  if (!timeout) return StateFailed(flow, std::move(timeout).error());
  auto heartbeat = Number(state.heartbeat, scope);
  if (!heartbeat) return StateFailed(flow, std::move(heartbeat).error());
  for (const auto& [value, computed] :
       {std::pair{&*timeout, &state.timeout}, std::pair{&*heartbeat, &state.heartbeat}}) {
    if (*value && **value <= 0) {
      return StateFailed(flow,
                         {.error = kRuntime,
                          .cause = "The " + computed->field +
                                   " field refers to a value that is not a positive integer: " +
                                   std::to_string(**value)});
    }
  }
  if (*timeout) task.deadline = env_.WallNow() + std::chrono::seconds(**timeout);
  task.heartbeat_s = *heartbeat;
  ResourceParts parts = PartsOf(state.resource);
  Json scheduled = parts.details;
  if (*timeout) scheduled["timeoutInSeconds"] = **timeout;
  if (*heartbeat) scheduled["heartbeatInSeconds"] = **heartbeat;
  Add(flow, std::string(parts.prefix) + "Scheduled", {}, task.input, {}, std::move(scheduled));
  Add(flow, std::string(parts.prefix) + "Started", {}, {}, {},
      parts.prefix == "LambdaFunction" ? Json() : std::move(parts.details));
  flow.task = std::move(task);
  flow.wants = Wants::kTask;
}

void Interpreter::TaskSubmitted(Flow& flow, const Json& answer) {
  ResourceParts parts = PartsOf(flow.task->resource);
  if (parts.submitted && flow.task->purpose == TaskProgress::Purpose::kTask) {
    Add(flow, "TaskSubmitted", {}, MakeValue(answer), {}, std::move(parts.details));
  }
}

void Interpreter::TaskSucceeded(Flow& flow, Json result) {
  if (flow.task->purpose == TaskProgress::Purpose::kWriteResults) return ResultsWritten(flow);
  const TaskProgress task = *std::move(flow.task);
  flow.task.reset();
  flow.wants = Wants::kNothing;
  if (task.purpose == TaskProgress::Purpose::kReadItems) {
    auto items = ReadItems(flow, result);
    if (!items) return StateFailed(flow, std::move(items).error());
    return StartItems(flow, *std::move(items));
  }
  ResourceParts parts = PartsOf(task.resource);
  if (JsonBytes(result, kMaxPayloadBytes) > kMaxPayloadBytes) {
    const std::string shown =
        parts.prefix == "Task" ? parts.details["resourceType"].get<std::string>() : task.resource;
    Failure failure{
        .error = kDataLimitExceeded,
        .cause =
            "The state/task '" + shown +
            "' returned a result with a size exceeding the maximum number of bytes service limit.",
        .internal = false};
    Add(flow, std::string(parts.prefix) + "Failed", {}, {}, failure,
        parts.prefix == "Task" ? parts.details : Json());
    return StateFailed(flow, std::move(failure));
  }
  Value output = MakeValue(std::move(result));
  Add(flow, std::string(parts.prefix) + "Succeeded", {}, output, {},
      parts.prefix == "Task" ? std::move(parts.details) : Json());
  Complete(flow, output, output);
}

void Interpreter::TaskFailed(Flow& flow, Failure failure) {
  failure.internal = false;
  if (failure.error == kTimeout || failure.error == kHeartbeatTimeout) {
    return TaskTimedOut(flow, failure.error == kHeartbeatTimeout);
  }
  const TaskProgress task = *std::move(flow.task);
  flow.task.reset();
  flow.wants = Wants::kNothing;
  if (task.purpose == TaskProgress::Purpose::kReadItems) {
    return StateFailed(
        flow, {.error = "States.ItemReaderFailed", .cause = failure.cause, .internal = false});
  }
  if (task.purpose == TaskProgress::Purpose::kWriteResults) {
    Add(flow, "MapRunFailed", {}, {},
        {.error = "States.ResultWriterFailed", .cause = failure.cause});
    return FailChildren(
        flow, {.error = "States.ResultWriterFailed", .cause = failure.cause, .internal = false});
  }
  ResourceParts parts = PartsOf(task.resource);
  Add(flow, std::string(parts.prefix) + "Failed", {}, {}, failure,
      parts.prefix == "Task" ? std::move(parts.details) : Json());
  StateFailed(flow, std::move(failure));
}

void Interpreter::TaskTimedOut(Flow& flow, bool heartbeat) {
  const TaskProgress task = *std::move(flow.task);
  flow.task.reset();
  flow.wants = Wants::kNothing;
  ResourceParts parts = PartsOf(task.resource);
  Failure failure{
      .error = heartbeat ? kHeartbeatTimeout : kTimeout, .cause = {}, .internal = false};
  Add(flow, std::string(parts.prefix) + "TimedOut", {}, {}, failure,
      parts.prefix == "Task" ? std::move(parts.details) : Json());
  StateFailed(flow, std::move(failure));
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
  Value output = result;
  if (state.jsonata) {
    if (state.output) {
      ScopeHolder scope(*this, flow, flow.input.get());
      if (has_result) scope->result = result.get();
      auto evaluated = state.output->Evaluate(*scope);
      if (!evaluated) return StateFailed(flow, std::move(evaluated).error());
      output = *std::move(evaluated);
    }
  } else {
    if (state.result_selector) {
      ScopeHolder scope(*this, flow, result.get());
      auto selected = state.result_selector->Evaluate(*scope);
      if (!selected) return StateFailed(flow, std::move(selected).error());
      output = *std::move(selected);
    }
    if (state.result_path.null) {
      output = flow.input;
    } else if (state.result_path.path) {
      Json combined = *flow.input;
      if (!state.result_path.path->Put(combined, *output)) {
        return StateFailed(
            flow, {.error = "States.ResultPathMatchFailure",
                   .cause = "Unable to apply ReferencePath " + state.result_path.path->text() +
                            " to input " + ToJsonText(*flow.input)});
      }
      output = MakeValue(std::move(combined));
    }
    if (state.output_path.null) {
      output = EmptyObject();
    } else if (state.output_path.query) {
      ScopeHolder scope(*this, flow, output.get());
      auto found = state.output_path.query->Find(*scope);
      if (!found) {
        return StateFailed(flow, {.error = kRuntime,
                                  .cause = "Invalid path '" + state.output_path.query->text +
                                           "' : " + found.error()});
      }
      output = MakeValue(*std::move(found));
    }
  }
  if (output != flow.input) {
    if (auto small = CheckSize(flow, *output); !small)
      return StateFailed(flow, std::move(small).error());
  }
  Leave(flow, std::move(output), assigned, state.next);
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
      Json combined = *flow.input;
      if (!catcher.result_path.path->Put(combined, error_output)) {
        return fail({.error = "States.ResultPathMatchFailure",
                     .cause = "Unable to apply ReferencePath " + catcher.result_path.path->text() +
                              " to input " + ToJsonText(*flow.input)});
      }
      output = MakeValue(std::move(combined));
    }
    Leave(flow, std::move(output), assigned, catcher.next);
    return true;
  }
  return false;
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
