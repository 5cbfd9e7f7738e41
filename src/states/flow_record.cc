#include "states/flow_record.h"

#include "base/json.h"
#include "states/flow_codec.h"

namespace muster::states {
namespace {

constexpr size_t kMaxInlineBody = 300 * 1024;
constexpr size_t kPartBytes = 200 * 1024;
constexpr size_t kMaxInlineItems = 32 * 1024;
constexpr size_t kMaxInlineEvents = 100;

Record Part(std::string key, const Json& body) {
  return Record{
      .kind = kPartKind, .queue = "none", .key = std::move(key), .body = ToJsonText(body)};
}

// Cuts a text into parts, at the boundaries of characters.
std::vector<Change> Cut(const std::string& text, const std::string& key,
                        std::vector<std::string>& keys) {
  std::vector<Change> changes;
  for (size_t start = 0; start < text.size();) {
    size_t end = std::min(start + kPartBytes, text.size());
    while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
    const std::string part_key = key + "." + std::to_string(keys.size());
    changes.push_back(Change::Put(Part(part_key, text.substr(start, end - start)), Due::Never()));
    keys.push_back(part_key);
    start = end;
  }
  return changes;
}

std::string ItemsKey(const FlowRecord& record) {
  return record.record.key + "#items-" + std::to_string(record.flow.entry) + "-" +
         std::to_string(record.flow.retry_count);
}

}  // namespace

std::string KeyOf(const std::string& execution, const std::string& path) {
  return path.empty() ? execution : execution + "/" + path;
}

bool SaysRunning(std::string_view body) {
  if (body.starts_with("{\"status\":\"RUNNING\"")) return true;  // the rest is in parts
  // Inside of a string these quotes would be escaped: the first match is the flow itself.
  constexpr std::string_view kFlow = "\"flow\":{\"state\":\"";
  size_t at = body.find(kFlow);
  if (at == std::string_view::npos) return false;
  for (at += kFlow.size(); at < body.size() && body[at] != '"'; ++at) {
    if (body[at] == '\\') ++at;
  }
  return at < body.size() && body.substr(at + 1).starts_with(",\"status\":\"RUNNING\"");
}

FlowCodec::Encoded FlowCodec::Encode(FlowRecord& record) const {
  Encoded encoded;
  // Keys of parts hold the epoch and the version: a holder that lost its record cannot overwrite
  // those of the next.
  const std::string stamp =
      std::to_string(record.record.epoch) + "-" + std::to_string(record.record.version);
  const auto& children = record.flow.children ? record.flow.children : record.flow.failed_children;
  const std::string items_key = ItemsKey(record);
  if (!children || record.item_keys.empty() || !record.item_keys.front().starts_with(items_key)) {
    record.item_keys.clear();
  }
  if (children && children->items && record.item_keys.empty() &&
      JsonBytes(*children->items, kMaxInlineItems) > kMaxInlineItems) {
    encoded.parts = Cut(ToJsonText(*children->items), items_key, record.item_keys);
  }
  Json body = {{"execution", record.execution},
               {"definition", record.machine},
               {"machine_name", record.info.machine_name},
               {"start", ToMillis(record.info.start)},
               {"flow", FlowToJson(record.flow, record.item_keys.empty())}};
  if (!record.item_keys.empty()) body["items"] = record.item_keys;
  if (record.info.redrive_count > 0) body["redrives"] = record.info.redrive_count;
  if (record.is_root() && record.flow.entry > 0 && record.info.input)
    body["input"] = *record.info.input;
  if (record.deadline) body["deadline"] = ToMillis(*record.deadline);
  if (record.stop) body["stop"] = ToMillis(*record.stop);
  if (!record.is_root()) body["parent"] = record.parent;
  if (record.apart) body["apart"] = true;
  if (record.cleanup) body["cleanup"] = true;
  if (record.cancel) {
    body["cancel"] = {{"resource", record.cancel->resource},
                      {"token", record.cancel->token},
                      {"resume", record.cancel->resume}};
    if (record.cancel->input) body["cancel"]["input"] = *record.cancel->input;
  }
  if (record.poll.count() > 0) body["poll"] = record.poll.count();
  if (record.events.size() > kMaxInlineEvents) {
    Json chunk = Json::array();
    for (const Event& event : record.events) chunk.push_back(EventToStored(event));
    std::vector<std::string> keys;
    for (Change& change :
         Cut(ToJsonText(chunk),
             record.record.key + "#history-" + std::to_string(record.event_count) + "-" + stamp,
             keys)) {
      encoded.parts.push_back(std::move(change));
    }
    record.chunks.push_back(ToJsonText(Json(keys)));
    record.events.clear();
  }
  if (!record.chunks.empty()) body["chunks"] = record.chunks;
  Json events = Json::array();
  for (const Event& event : record.events) events.push_back(EventToStored(event));
  body["events"] = std::move(events);
  body["first_event"] = record.first_event;
  body["event_count"] = record.event_count;
  if (record.branch_events > 0) body["branch_events"] = record.branch_events;
  encoded.body = ToJsonText(body);
  if (encoded.body.size() <= kMaxInlineBody) return encoded;
  std::vector<std::string> keys;
  for (Change& change : Cut(encoded.body, record.record.key + "#body-" + stamp, keys))
    encoded.parts.push_back(std::move(change));
  encoded.body = ToJsonText(Json{{"status", StatusName(record.flow.status)}, {"parts", keys}});
  return encoded;
}

Result<std::string> FlowCodec::LoadParts(const Json& keys) const {
  std::string text;
  for (const Json& key : keys) {
    MUSTER_ASSIGN(auto part, store_.Get(kPartKind, key.get<std::string>()));
    if (!part)
      return Error{Code::kCorrupt,
                   "part '" + key.get<std::string>() + "' of an execution is missing"};
    const Json slice = Json::parse(part->body, nullptr, false);
    if (!slice.is_string())
      return Error{Code::kCorrupt, "part '" + part->key + "' of an execution is damaged"};
    text += slice.get_ref<const std::string&>();
  }
  return text;
}

Result<FlowRecord> FlowCodec::Decode(Record stored) const {
  FlowRecord record;
  record.record = std::move(stored);
  const auto damaged = [&] {
    return Error{Code::kCorrupt,
                 "the record '" + record.record.key + "' is not an execution of ours",
                 "use a namespace of its own for each deployment"};
  };
  Json body = Json::parse(record.record.body, nullptr, false);
  if (!body.is_object()) return damaged();
  if (body.contains("parts")) {
    MUSTER_ASSIGN(const std::string text, LoadParts(body["parts"]));
    body = Json::parse(text, nullptr, false);
    if (!body.is_object()) return damaged();
  }
  if (!body.contains("flow") || !body.contains("execution")) return damaged();
  try {
    record.execution = body["execution"].get<std::string>();
    record.machine = body["definition"].get<std::string>();
    record.info.name = record.execution;
    record.info.machine_name = body["machine_name"].get<std::string>();
    record.info.start = FromMillis(body["start"].get<int64_t>());
    record.info.redrive_count = body.value("redrives", int64_t{0});
    MUSTER_ASSIGN(record.flow, FlowFromJson(body["flow"]));
    if (body.contains("input")) record.info.input = MakeValue(body["input"]);
    record.parent = body.value("parent", "");
    if (record.is_root() && !record.info.input) record.info.input = record.flow.input;
    if (body.contains("deadline")) record.deadline = FromMillis(body["deadline"].get<int64_t>());
    if (body.contains("stop")) record.stop = FromMillis(body["stop"].get<int64_t>());
    record.apart = body.contains("apart");
    record.cleanup = body.contains("cleanup");
    if (body.contains("cancel")) {
      const Json& cancel = body["cancel"];
      record.cancel = TaskProgress{.resource = cancel["resource"].get<std::string>(),
                                   .input = MakeValue(cancel.value("input", Json::object())),
                                   .token = cancel["token"].get<std::string>(),
                                   .resume = cancel["resume"],
                                   .pending = true};
    }
    record.poll = milliseconds(body.value("poll", int64_t{0}));
    if (body.contains("items")) record.item_keys = body["items"].get<std::vector<std::string>>();
    if (body.contains("chunks")) record.chunks = body["chunks"].get<std::vector<std::string>>();
    for (const Json& event : body["events"]) record.events.push_back(EventFromStored(event));
    record.first_event = body["first_event"].get<int64_t>();
    record.event_count = body["event_count"].get<int64_t>();
    record.branch_events = body.value("branch_events", int64_t{0});
  } catch (const nlohmann::json::exception&) {
    return damaged();
  }
  return record;
}

Status FlowCodec::LoadItems(FlowRecord& record) const {
  auto& children = record.flow.children ? record.flow.children : record.flow.failed_children;
  if (!children || children->items) return {};
  MUSTER_ASSIGN(const std::string text, LoadParts(Json(record.item_keys)));
  Json items = Json::parse(text, nullptr, false);
  if (items.is_discarded())
    return Error{Code::kCorrupt, "the items of '" + record.record.key + "' are damaged"};
  children->items = MakeValue(std::move(items));
  return {};
}

Result<std::vector<Event>> FlowCodec::LoadEvents(const FlowRecord& record) const {
  std::vector<Event> events;
  for (const std::string& chunk : record.chunks) {
    MUSTER_ASSIGN(const std::string text, LoadParts(Json::parse(chunk)));
    const Json list = Json::parse(text, nullptr, false);
    if (!list.is_array())
      return Error{Code::kCorrupt, "the history of '" + record.record.key + "' is damaged"};
    for (const Json& event : list) events.push_back(EventFromStored(event));
  }
  events.insert(events.end(), record.events.begin(), record.events.end());
  return events;
}

Result<std::string> FlowCodec::LoadMachine(const std::string& key) const {
  MUSTER_ASSIGN(auto stored, store_.Get(kMachineKind, key));
  if (!stored)
    return Error{Code::kCorrupt, "the definition '" + key + "' is missing from the store"};
  const Json body = Json::parse(stored->body, nullptr, false);
  if (!body.is_object() || !body.contains("parts"))
    return Error{Code::kCorrupt, "the definition '" + key + "' is damaged"};
  return LoadParts(body["parts"]);
}

std::vector<Change> FlowCodec::MachineChanges(const std::string& key, const std::string& text) {
  std::vector<std::string> keys;
  std::vector<Change> changes = Cut(text, "machine-" + key, keys);
  changes.push_back(Change::Put(Record{.kind = kMachineKind,
                                       .queue = "none",
                                       .key = key,
                                       .body = ToJsonText(Json{{"parts", keys}})},
                                Due::Never()));
  return changes;
}

}  // namespace muster::states
