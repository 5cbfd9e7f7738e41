#include "states/durable/history.h"

#include <array>

#include "core/enum_names.h"
#include "core/timestamp.h"

namespace muster::states {
namespace {

bool IsStateEvent(const std::string& type) {
  return type.ends_with("StateEntered") || type.ends_with("StateExited");
}

// "TaskFailed" → "taskFailedEventDetails"; all types of entering a state share one name.
std::string DetailsKey(const std::string& type) {
  if (type.ends_with("StateEntered")) return "stateEnteredEventDetails";
  if (type.ends_with("StateExited")) return "stateExitedEventDetails";
  std::string key = type + "EventDetails";
  key[0] = static_cast<char>(key[0] - 'A' + 'a');
  return key;
}

std::string_view PayloadKey(const std::string& type) {
  if (type.ends_with("Entered") || type == "ExecutionStarted" ||
      type == "LambdaFunctionScheduled" || type == "ActivityScheduled") {
    return "input";
  }
  return type == "TaskScheduled" ? "parameters" : "output";
}

}  // namespace

EventKind Event::Kind() const {
  static constexpr std::array<std::string_view, 3> kCalls{"Task", "LambdaFunction", "Activity"};
  static constexpr EnumNames<EventKind, 4> kSteps{{{
      {EventKind::kCallScheduled, "Scheduled"},
      {EventKind::kCallSucceeded, "Succeeded"},
      {EventKind::kCallFailed, "Failed"},
      {EventKind::kCallTimedOut, "TimedOut"},
  }}};
  if (type == "ExecutionStarted") return EventKind::kExecutionStarted;
  if (type == "TaskStateEntered") return EventKind::kTaskEntered;
  if (type.ends_with("StateEntered")) return EventKind::kStateEntered;
  if (type.ends_with("StateExited")) return EventKind::kStateExited;
  for (const std::string_view call : kCalls) {
    if (!type.starts_with(call)) continue;
    return kSteps.Find(std::string_view(type).substr(call.size())).value_or(EventKind::kOther);
  }
  return EventKind::kOther;
}

Json Event::Details() const {
  Json body = details.is_object() ? details : Json::object();
  if (!name.empty()) body["name"] = name;
  if (payload) {
    const std::string key(PayloadKey(type));
    body[key] = ToJsonText(*payload);
    if (key != "parameters") body[key + "Details"] = {{"truncated", false}};
  } else if (truncated) {
    body[std::string(PayloadKey(type)) + "Details"] = {{"truncated", true}};
  }
  if (!error.empty()) body["error"] = error;
  if (!cause.empty()) body["cause"] = cause;
  return body;
}

Json Event::ToJson() const {
  Json json = {{"timestamp", FormatTimestamp(time)},
               {"type", type},
               {"id", id},
               {"previousEventId", previous}};
  Json body = Details();
  if (!body.empty()) json[DetailsKey(type)] = std::move(body);
  return json;
}

Json Event::ToShort() const {
  Json json = Json::array({type});
  if (IsStateEvent(type)) json.push_back(name);
  return json;
}

}  // namespace muster::states
