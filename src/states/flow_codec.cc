#include "states/flow_codec.h"

#include "states/interpreter.h"

namespace muster::states {
namespace {

constexpr size_t kMaxStoredPayload = 8 * 1024;

void PutNumber(Json& json, const char* key, int64_t value) {
  if (value != 0) json[key] = value;
}
void PutText(Json& json, const char* key, const std::string& value) {
  if (!value.empty()) json[key] = value;
}
void PutValue(Json& json, const char* key, const Value& value) {
  if (value) json[key] = *value;
}
void PutTime(Json& json, const char* key, const std::optional<WallTime>& time) {
  if (time) json[key] = ToMillis(*time);
}

int64_t NumberAt(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_number_integer() ? found->get<int64_t>() : 0;
}
std::string TextAt(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_string() ? found->get<std::string>() : std::string();
}
Value TakeAt(Json& json, const char* key) {
  const auto found = json.find(key);
  return found == json.end() ? nullptr : MakeValue(std::move(*found));
}
std::optional<WallTime> TimeAt(const Json& json, const char* key) {
  if (!json.contains(key)) return {};
  return FromMillis(NumberAt(json, key));
}

Json TaskToJson(const TaskProgress& task) {
  Json json = {{"resource", task.resource}, {"token", task.token}};
  PutNumber(json, "purpose", static_cast<int64_t>(task.purpose));
  // What a call writes is gathered again by whoever makes it.
  if (task.purpose != TaskProgress::Purpose::kWriteResults) PutValue(json, "input", task.input);
  PutValue(json, "credentials", task.credentials);
  PutTime(json, "deadline", task.deadline);
  if (task.heartbeat_s) json["heartbeat"] = *task.heartbeat_s;
  if (task.pending) json["resume"] = task.resume;
  return json;
}

TaskProgress TaskFromJson(Json& json) {
  TaskProgress task;
  task.purpose = static_cast<TaskProgress::Purpose>(NumberAt(json, "purpose"));
  task.resource = TextAt(json, "resource");
  task.token = TextAt(json, "token");
  task.input = TakeAt(json, "input");
  if (!task.input) task.input = MakeValue(Json::object());
  task.credentials = TakeAt(json, "credentials");
  task.deadline = TimeAt(json, "deadline");
  if (json.contains("heartbeat")) task.heartbeat_s = NumberAt(json, "heartbeat");
  task.pending = json.contains("resume");
  if (task.pending) task.resume = json["resume"];
  return task;
}

Json ChildrenToJson(const ChildrenProgress& children, bool with_items) {
  Json json = {{"total", children.total}, {"started", children.started}};
  PutNumber(json, "concurrency", children.concurrency);
  PutNumber(json, "failed", children.failed);
  PutNumber(json, "tolerated", children.tolerated_count);
  if (children.tolerated_percentage > 0) json["percentage"] = children.tolerated_percentage;
  PutNumber(json, "below", children.settled_below);
  if (children.shared) json["shared"] = true;
  if (!children.settled.empty()) json["settled"] = children.settled;
  if (with_items) PutValue(json, "items", children.items);
  return json;
}

ChildrenProgress ChildrenFromJson(Json& json) {
  ChildrenProgress children;
  children.total = NumberAt(json, "total");
  children.started = NumberAt(json, "started");
  children.concurrency = NumberAt(json, "concurrency");
  children.failed = NumberAt(json, "failed");
  children.tolerated_count = NumberAt(json, "tolerated");
  if (json.contains("percentage")) children.tolerated_percentage = json["percentage"].get<double>();
  children.settled_below = NumberAt(json, "below");
  children.shared = json.contains("shared");
  if (json.contains("settled")) {
    for (const Json& index : json["settled"]) children.settled.insert(index.get<int64_t>());
  }
  children.items = TakeAt(json, "items");
  return children;
}

Json ResultsToJson(const ResultsProgress& results) {
  Json json = {{"parameters", results.parameters}, {"folder", results.folder}};
  PutText(json, "list", results.list);
  if (results.only_succeeded) json["only_succeeded"] = true;
  PutNumber(json, "next", results.next);
  if (!results.files.is_null()) json["files"] = results.files;
  if (results.failure) {
    json["failure"] = {{"error", results.failure->error}, {"cause", results.failure->cause}};
  }
  return json;
}

ResultsProgress ResultsFromJson(const Json& json) {
  ResultsProgress results{.parameters = json["parameters"],
                          .folder = TextAt(json, "folder"),
                          .list = TextAt(json, "list"),
                          .only_succeeded = json.contains("only_succeeded"),
                          .next = NumberAt(json, "next")};
  if (json.contains("files")) results.files = json["files"];
  if (json.contains("failure")) {
    results.failure = Failure{.error = TextAt(json["failure"], "error"),
                              .cause = TextAt(json["failure"], "cause"),
                              .internal = false};
  }
  return results;
}

}  // namespace

int64_t ToMillis(WallTime time) { return time.time_since_epoch().count(); }
WallTime FromMillis(int64_t millis) { return WallTime(std::chrono::milliseconds(millis)); }

Json FlowToJson(const Flow& flow, bool with_items) {
  Json json = {{"state", flow.state}, {"status", StatusName(flow.status)}};
  PutNumber(json, "machine", flow.machine);
  PutText(json, "path", flow.path);
  PutNumber(json, "wants", static_cast<int64_t>(flow.wants));
  if (flow.inside) json["inside"] = true;
  PutNumber(json, "entry", flow.entry);
  PutNumber(json, "entered", flow.entered_event);
  PutNumber(json, "last", flow.last_event);
  PutNumber(json, "entered_time", ToMillis(flow.entered_time));
  PutNumber(json, "retries", flow.retry_count);
  if (flow.retry_count > 0) json["retriers"] = flow.retrier_counts;
  if (flow.backing_off) json["backing_off"] = true;
  PutTime(json, "due", flow.due);
  if (flow.task) json["task"] = TaskToJson(*flow.task);
  if (flow.children) json["children"] = ChildrenToJson(*flow.children, with_items);
  if (flow.failed_children)
    json["failed_children"] = ChildrenToJson(*flow.failed_children, with_items);
  if (flow.results) json["results"] = ResultsToJson(*flow.results);
  if (flow.map_index) json["index"] = *flow.map_index;
  if (!flow.ended() || flow.status != FlowStatus::kSucceeded) PutValue(json, "input", flow.input);
  // An item is most often its iteration's input as well.
  if (flow.map_value && flow.map_value != flow.input) json["item"] = *flow.map_value;
  if (!flow.variables.empty() && flow.status != FlowStatus::kSucceeded) {
    Json& variables = json["variables"] = Json::object();
    for (const auto& [name, value] : flow.variables) variables[name] = *value;
  }
  PutValue(json, "output", flow.output);
  PutText(json, "error", flow.failure.error);
  PutText(json, "cause", flow.failure.cause);
  return json;
}

Result<Flow> FlowFromJson(Json&& json) {
  if (!json.is_object() || !json.contains("state") || !json.contains("status")) {
    return Error{Code::kCorrupt, "the record of an execution has no flow in it"};
  }
  Flow flow;
  const std::string status = TextAt(json, "status");
  for (const FlowStatus known : {FlowStatus::kRunning, FlowStatus::kSucceeded, FlowStatus::kFailed,
                                 FlowStatus::kTimedOut, FlowStatus::kAborted}) {
    if (StatusName(known) == status) flow.status = known;
  }
  flow.state = TextAt(json, "state");
  flow.machine = static_cast<int>(NumberAt(json, "machine"));
  flow.path = TextAt(json, "path");
  flow.wants = static_cast<Wants>(NumberAt(json, "wants"));
  flow.inside = json.contains("inside");
  flow.entry = NumberAt(json, "entry");
  flow.entered_event = NumberAt(json, "entered");
  flow.last_event = NumberAt(json, "last");
  flow.entered_time = FromMillis(NumberAt(json, "entered_time"));
  flow.retry_count = NumberAt(json, "retries");
  if (json.contains("retriers")) flow.retrier_counts = json["retriers"].get<std::vector<int64_t>>();
  flow.backing_off = json.contains("backing_off");
  flow.due = TimeAt(json, "due");
  if (json.contains("task")) flow.task = TaskFromJson(json["task"]);
  if (json.contains("children")) flow.children = ChildrenFromJson(json["children"]);
  if (json.contains("failed_children"))
    flow.failed_children = ChildrenFromJson(json["failed_children"]);
  if (json.contains("results")) flow.results = ResultsFromJson(json["results"]);
  flow.input = TakeAt(json, "input");
  if (!flow.input) flow.input = MakeValue(Json::object());
  if (json.contains("index")) {
    flow.map_index = NumberAt(json, "index");
    flow.map_value = json.contains("item") ? TakeAt(json, "item") : flow.input;
  }
  if (json.contains("variables")) {
    Json& variables = json["variables"];
    for (auto variable = variables.begin(); variable != variables.end(); ++variable)
      flow.variables[variable.key()] = MakeValue(std::move(variable.value()));
  }
  flow.output = TakeAt(json, "output");
  flow.failure = {
      .error = TextAt(json, "error"), .cause = TextAt(json, "cause"), .internal = false};
  return flow;
}

Json EventToStored(const Event& event) {
  Json json = {{"id", event.id}, {"type", event.type}, {"time", ToMillis(event.time)}};
  PutNumber(json, "previous", event.previous);
  PutText(json, "name", event.name);
  if (event.payload) {
    if (JsonBytes(*event.payload, kMaxStoredPayload) <= kMaxStoredPayload) {
      json["payload"] = *event.payload;
    } else {
      json["truncated"] = true;
    }
  }
  PutText(json, "error", event.error);
  PutText(json, "cause", event.cause);
  if (!event.details.is_null()) json["details"] = event.details;
  return json;
}

Event EventFromStored(Json&& json) {
  Event event;
  event.id = NumberAt(json, "id");
  event.type = TextAt(json, "type");
  event.time = FromMillis(NumberAt(json, "time"));
  event.previous = NumberAt(json, "previous");
  event.name = TextAt(json, "name");
  event.payload = TakeAt(json, "payload");
  event.truncated = json.contains("truncated");
  event.error = TextAt(json, "error");
  event.cause = TextAt(json, "cause");
  if (json.contains("details")) event.details = std::move(json["details"]);
  return event;
}

}  // namespace muster::states
