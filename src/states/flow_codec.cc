#include "states/flow_codec.h"

#include <simdjson.h>

#include <charconv>

#include "states/interpreter.h"

namespace muster::states {
namespace {

namespace ondemand = simdjson::ondemand;

constexpr size_t kMaxStoredPayload = 8 * 1024;

// A body ends with its history, which stays text, and begins with how long that end is.
constexpr std::string_view kTail = "{\"tail\":";
constexpr std::string_view kEvents = ",\"events\":[";
constexpr std::string_view kEnd = "]}";

// A JSON object, written member by member: records are written so often that a tree which is only
// made to be written costs more than all else. Keys need no escapes.
class ObjectText {
 public:
  ObjectText& Raw(std::string_view key, std::string_view json) {
    Key(key).append(json);
    return *this;
  }
  ObjectText& Value(std::string_view key, const Json& json) { return Raw(key, ToJsonText(json)); }
  ObjectText& Number(std::string_view key, int64_t value) {
    return Raw(key, std::to_string(value));
  }
  ObjectText& Flag(std::string_view key) { return Raw(key, "true"); }
  ObjectText& Text(std::string_view key, std::string_view value) {
    AppendJsonString(Key(key), value);
    return *this;
  }

  std::string Close() && {
    text_ += '}';
    return std::move(text_);
  }

 private:
  std::string& Key(std::string_view key) {
    if (text_.size() > 1) text_ += ',';
    return text_.append("\"").append(key).append("\":");
  }

  std::string text_ = "{";
};

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

template <class T>
T EnumOf(int64_t number, T last) {
  if (number < 0 || number > static_cast<int64_t>(last))
    throw Json::Exception(std::to_string(number) + " is not known");
  return static_cast<T>(number);
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

TaskProgress TaskFromJson(Json json) {
  TaskProgress task;
  task.purpose = EnumOf(NumberAt(json, "purpose"), TaskProgress::Purpose::kWriteResults);
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

ChildrenProgress ChildrenFromJson(Json json) {
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

FlowStatus StatusOf(std::string_view name) {
  if (const auto status = FindFlowStatus(name)) return *status;
  throw Json::Exception("there is no status '" + std::string(name) + "'");
}

// What the interpreter relies on.
void CheckFlow(const Flow& flow) {
  if (flow.ended()) return;
  const bool calls = flow.wants == Wants::kTask || flow.wants == Wants::kCallback;
  if (calls && !flow.task) throw Json::Exception("it waits for a call that is not there");
  if (flow.wants == Wants::kChildren && !flow.children)
    throw Json::Exception("it waits for branches that are not there");
}

std::string FlowToJson(const Flow& flow, bool with_items) {
  ObjectText json;
  json.Text("state", flow.state).Text("status", NameOf(flow.status));
  if (flow.machine != 0) json.Number("machine", flow.machine);
  if (!flow.path.empty()) json.Text("path", flow.path);
  if (flow.wants != Wants::kNothing) json.Number("wants", static_cast<int64_t>(flow.wants));
  if (flow.inside) json.Flag("inside");
  if (flow.entry != 0) json.Number("entry", flow.entry);
  if (flow.entered_event != 0) json.Number("entered", flow.entered_event);
  if (flow.last_event != 0) json.Number("last", flow.last_event);
  if (flow.entered_time != WallTime{}) json.Number("entered_time", ToMillis(flow.entered_time));
  if (flow.retry_count != 0) {
    json.Number("retries", flow.retry_count).Value("retriers", flow.retrier_counts);
  }
  if (flow.backing_off) json.Flag("backing_off");
  if (flow.due) json.Number("due", ToMillis(*flow.due));
  if (flow.task) json.Value("task", TaskToJson(*flow.task));
  if (flow.children) json.Value("children", ChildrenToJson(*flow.children, with_items));
  if (flow.failed_children) {
    json.Value("failed_children", ChildrenToJson(*flow.failed_children, with_items));
  }
  if (flow.results) json.Value("results", ResultsToJson(*flow.results));
  if (flow.map_index) json.Number("index", *flow.map_index);
  const bool has_succeeded = flow.status == FlowStatus::kSucceeded;
  if (flow.input && !has_succeeded) json.Value("input", *flow.input);
  // An item is most often its iteration's input as well.
  if (flow.map_value && flow.map_value != flow.input) json.Value("item", *flow.map_value);
  if (!flow.variables.empty() && !has_succeeded) {
    Json variables = Json::object();
    for (const auto& [name, value] : flow.variables) variables[name] = *value;
    json.Value("variables", variables);
  }
  if (flow.output) json.Value("output", *flow.output);
  if (!flow.failure.error.empty()) json.Text("error", flow.failure.error);
  if (!flow.failure.cause.empty()) json.Text("cause", flow.failure.cause);
  return std::move(json).Close();
}

std::string_view RawOf(ondemand::value& value) {
  switch (value.type()) {
    case ondemand::json_type::object:
      return value.get_object().value().raw_json();
    case ondemand::json_type::array:
      return value.get_array().value().raw_json();
    default:
      return value.raw_json_token();
  }
}
Json JsonOf(ondemand::value& value) { return Json::parse(RawOf(value)); }
std::string TextOf(ondemand::value& value) {
  return std::string(std::string_view(value.get_string()));
}
Value ValueOf(ondemand::value& value) { return MakeValue(JsonOf(value)); }
WallTime TimeOf(ondemand::value& value) { return FromMillis(value.get_int64()); }

Flow FlowFromJson(ondemand::object json) {
  Flow flow;
  for (ondemand::field field : json) {
    const std::string_view name = field.unescaped_key();
    ondemand::value value = field.value();
    if (name == "state") {
      flow.state = TextOf(value);
    } else if (name == "status") {
      flow.status = StatusOf(value.get_string());
    } else if (name == "machine") {
      flow.machine = static_cast<int>(int64_t(value.get_int64()));
    } else if (name == "path") {
      flow.path = TextOf(value);
    } else if (name == "wants") {
      flow.wants = EnumOf(value.get_int64(), Wants::kChildren);
    } else if (name == "inside") {
      flow.inside = true;
    } else if (name == "entry") {
      flow.entry = value.get_int64();
    } else if (name == "entered") {
      flow.entered_event = value.get_int64();
    } else if (name == "last") {
      flow.last_event = value.get_int64();
    } else if (name == "entered_time") {
      flow.entered_time = TimeOf(value);
    } else if (name == "retries") {
      flow.retry_count = value.get_int64();
    } else if (name == "retriers") {
      for (int64_t count : value.get_array()) flow.retrier_counts.push_back(count);
    } else if (name == "backing_off") {
      flow.backing_off = true;
    } else if (name == "due") {
      flow.due = TimeOf(value);
    } else if (name == "task") {
      flow.task = TaskFromJson(JsonOf(value));
    } else if (name == "children") {
      flow.children = ChildrenFromJson(JsonOf(value));
    } else if (name == "failed_children") {
      flow.failed_children = ChildrenFromJson(JsonOf(value));
    } else if (name == "results") {
      flow.results = ResultsFromJson(JsonOf(value));
    } else if (name == "index") {
      flow.map_index = value.get_int64();
    } else if (name == "input") {
      flow.input = ValueOf(value);
    } else if (name == "item") {
      flow.map_value = ValueOf(value);
    } else if (name == "variables") {
      for (ondemand::field variable : value.get_object()) {
        const std::string variable_name(std::string_view(variable.unescaped_key()));
        flow.variables[variable_name] = ValueOf(variable.value());
      }
    } else if (name == "output") {
      flow.output = ValueOf(value);
    } else if (name == "error") {
      flow.failure.error = TextOf(value);
    } else if (name == "cause") {
      flow.failure.cause = TextOf(value);
    }
  }
  flow.failure.internal = false;
  if (!flow.input) flow.input = MakeValue(Json::object());
  if (flow.map_index && !flow.map_value) flow.map_value = flow.input;
  CheckFlow(flow);
  return flow;
}

StoredItems ItemsFromJson(const Json& json) {
  StoredItems items{.key = json.at("key").get<std::string>()};
  for (const Json& piece : json.at("pieces"))
    items.pieces.push_back({piece.at(0).get<int64_t>(), piece.at(1).get<int64_t>()});
  return items;
}

TaskProgress CancelFromJson(const Json& json) {
  return {.resource = json.at("resource").get<std::string>(),
          .input = MakeValue(json.value("input", Json::object())),
          .token = json.at("token").get<std::string>(),
          .resume = json.at("resume"),
          .pending = true};
}

// An array without its brackets.
std::string ElementsOf(ondemand::value& array) {
  const std::string_view text = RawOf(array);
  return std::string(text.substr(1, text.rfind(']') - 1));
}

}  // namespace

int64_t ToMillis(WallTime time) { return time.time_since_epoch().count(); }
WallTime FromMillis(int64_t millis) { return WallTime(std::chrono::milliseconds(millis)); }

std::string BodyToJson(const FlowRecord& record) {
  ObjectText body;
  body.Number("tail", static_cast<int64_t>(kEvents.size() + record.events.size() + kEnd.size()))
      .Text("execution", record.execution)
      .Text("definition", record.machine)
      .Text("machine_name", record.info.machine_name)
      .Number("start", ToMillis(record.info.start))
      .Raw("flow", FlowToJson(record.flow, record.items.key.empty()));
  if (!record.items.key.empty()) {
    Json pieces = Json::array();
    for (const StoredItems::Piece& piece : record.items.pieces)
      pieces.push_back({piece.first, piece.parts});
    body.Value("items", {{"key", record.items.key}, {"pieces", std::move(pieces)}});
  }
  if (record.info.redrive_count > 0) body.Number("redrives", record.info.redrive_count);
  if ((record.is_root() || record.apart) && record.flow.entry > 0 && record.info.input)
    body.Value("input", *record.info.input);
  if (record.deadline) body.Number("deadline", ToMillis(*record.deadline));
  if (record.stop) body.Number("stop", ToMillis(*record.stop));
  if (!record.is_root()) body.Text("parent", record.parent);
  if (record.apart) body.Flag("apart");
  if (!record.within.empty() && !record.apart) body.Text("within", record.within);
  if (record.cleanup) body.Flag("cleanup");
  if (record.cancel) {
    Json cancel = {{"resource", record.cancel->resource},
                   {"token", record.cancel->token},
                   {"resume", record.cancel->resume}};
    if (record.cancel->input) cancel["input"] = *record.cancel->input;
    body.Value("cancel", cancel);
  }
  if (record.poll.count() > 0) body.Number("poll", record.poll.count());
  if (!record.chunks.empty()) body.Value("chunks", record.chunks);
  body.Number("first_event", record.first_event)
      .Number("event_count", record.event_count)
      .Number("inline_events", record.inline_events);
  if (record.branch_events > 0) body.Number("branch_events", record.branch_events);
  body.Raw("events", "[" + record.events + "]");
  return std::move(body).Close();
}

Json BodyFromJson(const std::string& body, FlowRecord& record) {
  size_t tail = 0;
  if (body.starts_with(kTail))
    std::from_chars(body.data() + kTail.size(), body.data() + body.size(), tail);
  const size_t head = tail < body.size() ? body.size() - tail : 0;
  const bool as_written =
      tail > kEvents.size() + kEnd.size() && body.compare(head, kEvents.size(), kEvents) == 0;
  if (as_written)
    record.events = body.substr(head + kEvents.size(), tail - kEvents.size() - kEnd.size());
  thread_local ondemand::parser parser;
  const simdjson::padded_string text(as_written ? body.substr(0, head) + "}" : body);
  Json parts;
  ondemand::document document = parser.iterate(text);
  for (ondemand::field field : document.get_object()) {
    const std::string_view name = field.unescaped_key();
    ondemand::value value = field.value();
    if (name == "execution") {
      record.execution = TextOf(value);
    } else if (name == "definition") {
      record.machine = TextOf(value);
    } else if (name == "machine_name") {
      record.info.machine_name = TextOf(value);
    } else if (name == "start") {
      record.info.start = TimeOf(value);
    } else if (name == "flow") {
      record.flow = FlowFromJson(value.get_object());
    } else if (name == "items") {
      record.items = ItemsFromJson(*ValueOf(value));
    } else if (name == "redrives") {
      record.info.redrive_count = value.get_int64();
    } else if (name == "input") {
      record.info.input = ValueOf(value);
    } else if (name == "deadline") {
      record.deadline = TimeOf(value);
    } else if (name == "stop") {
      record.stop = TimeOf(value);
    } else if (name == "parent") {
      record.parent = TextOf(value);
    } else if (name == "apart") {
      record.apart = true;
    } else if (name == "within") {
      record.within = TextOf(value);
    } else if (name == "cleanup") {
      record.cleanup = true;
    } else if (name == "cancel") {
      record.cancel = CancelFromJson(*ValueOf(value));
    } else if (name == "poll") {
      record.poll = milliseconds(int64_t(value.get_int64()));
    } else if (name == "chunks") {
      record.chunks = ValueOf(value)->get<std::vector<std::string>>();
    } else if (name == "first_event") {
      record.first_event = value.get_int64();
    } else if (name == "event_count") {
      record.event_count = value.get_int64();
    } else if (name == "inline_events") {
      record.inline_events = value.get_int64();
    } else if (name == "branch_events") {
      record.branch_events = value.get_int64();
    } else if (name == "events") {
      record.events = ElementsOf(value);
    } else if (name == "parts") {
      parts = *ValueOf(value);
    }
  }
  return parts;
}

std::string EventToStored(const Event& event) {
  ObjectText json;
  json.Number("id", event.id).Text("type", event.type).Number("time", ToMillis(event.time));
  if (event.previous != 0) json.Number("previous", event.previous);
  if (!event.name.empty()) json.Text("name", event.name);
  if (event.payload) {
    if (JsonBytes(*event.payload, kMaxStoredPayload) <= kMaxStoredPayload) {
      json.Value("payload", *event.payload);
    } else {
      json.Flag("truncated");
    }
  }
  if (!event.error.empty()) json.Text("error", event.error);
  if (!event.cause.empty()) json.Text("cause", event.cause);
  if (!event.details.is_null()) json.Value("details", event.details);
  return std::move(json).Close();
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
