#include "states/durable/history.h"

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

Json Event::ToJson() const {
  Json json = {{"timestamp", FormatTimestamp(time)},
               {"type", type},
               {"id", id},
               {"previousEventId", previous}};
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
  if (!body.empty()) json[DetailsKey(type)] = std::move(body);
  return json;
}

Json Event::ToShort() const {
  Json json = Json::array({type});
  if (IsStateEvent(type)) json.push_back(name);
  return json;
}

}  // namespace muster::states
