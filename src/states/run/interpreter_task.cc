// Task states: the call, its events, and its answer.

#include "core/enum_names.h"
#include "states/run/interpreter_scope.h"

namespace muster::states {
namespace {

enum class TaskKind { kTask, kLambda, kActivity };

// As the types of their events begin.
constexpr EnumNames<TaskKind, 3> kTaskKinds{{{
    {TaskKind::kTask, "Task"},
    {TaskKind::kLambda, "LambdaFunction"},
    {TaskKind::kActivity, "Activity"},
}}};

// A resource as the events of its calls describe it.
struct ResourceParts {
  TaskKind kind;
  Json details;
  bool submitted;  // accepted first, answered later

  std::string EventType(std::string_view what) const {
    return std::string(kTaskKinds.NameOf(kind)).append(what);
  }
};

ResourceParts PartsOf(const std::string& resource) {
  constexpr std::string_view kIntegration = "arn:aws:states:::";
  if (resource.find(":lambda:") != std::string::npos && resource.starts_with("arn:") &&
      resource.find(":function:") != std::string::npos) {
    return {TaskKind::kLambda, {{"resource", resource}}, false};
  }
  if (resource.starts_with("arn:") && resource.find(":activity:") != std::string::npos) {
    return {TaskKind::kActivity, {{"resource", resource}}, false};
  }
  const bool submitted =
      resource.find(".sync") != std::string::npos || resource.ends_with(".waitForTaskToken");
  std::string name = resource;
  if (name.starts_with(kIntegration)) name = name.substr(kIntegration.size());
  const size_t colon = name.rfind(':', name.find('.'));
  Json details = {{"resourceType", colon == std::string::npos ? name : name.substr(0, colon)},
                  {"resource", colon == std::string::npos ? name : name.substr(colon + 1)}};
  return {TaskKind::kTask, std::move(details), submitted};
}

}  // namespace

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
  Add(flow, parts.EventType("Scheduled"), {}, task.input, {}, std::move(scheduled));
  Add(flow, parts.EventType("Started"), {}, {}, {},
      parts.kind == TaskKind::kLambda ? Json() : std::move(parts.details));
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
    const std::string shown = parts.kind == TaskKind::kTask
                                  ? parts.details["resourceType"].get<std::string>()
                                  : task.resource;
    Failure failure{
        .error = kDataLimitExceeded,
        .cause =
            "The state/task '" + shown +
            "' returned a result with a size exceeding the maximum number of bytes service limit.",
        .internal = false};
    Add(flow, parts.EventType("Failed"), {}, {}, failure,
        parts.kind == TaskKind::kTask ? parts.details : Json());
    return StateFailed(flow, std::move(failure));
  }
  Value output = MakeValue(std::move(result));
  Add(flow, parts.EventType("Succeeded"), {}, output, {},
      parts.kind == TaskKind::kTask ? std::move(parts.details) : Json());
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
  Add(flow, parts.EventType("Failed"), {}, {}, failure,
      parts.kind == TaskKind::kTask ? std::move(parts.details) : Json());
  StateFailed(flow, std::move(failure));
}

void Interpreter::TaskTimedOut(Flow& flow, bool heartbeat) {
  const TaskProgress task = *std::move(flow.task);
  flow.task.reset();
  flow.wants = Wants::kNothing;
  ResourceParts parts = PartsOf(task.resource);
  Failure failure{
      .error = heartbeat ? kHeartbeatTimeout : kTimeout, .cause = {}, .internal = false};
  Add(flow, parts.EventType("TimedOut"), {}, {}, failure,
      parts.kind == TaskKind::kTask ? std::move(parts.details) : Json());
  StateFailed(flow, std::move(failure));
}

}  // namespace muster::states
