#include "states/durable/flow_record.h"

#include <algorithm>

#include "core/json.h"
#include "core/record_fields.h"
#include "states/durable/flow_codec.h"

namespace muster::states {
namespace {

// A definition: the keys of the parts of its text.
struct MachineBody {
  std::vector<std::string> parts;
};
constexpr RecordTable<MachineBody, 1> kMachineTable{
    RecordFormat{kMachineKind, 1}, {{Required<MachineBody, &MachineBody::parts>("parts")}}};

constexpr size_t kMaxInlineBody = 300 * 1024;
constexpr size_t kPartBytes = 200 * 1024;
constexpr size_t kMaxInlineItems = 32 * 1024;
constexpr size_t kItemPieceBytes = 64 * 1024;
constexpr int64_t kMaxInlineEvents = 100;
// The record is written several times per event: it must not hold many large ones.
constexpr size_t kMaxInlineEventBytes = 32 * 1024;

store::Record Part(std::string key, const Json& body) {
  return store::Record{
      .kind = kPartKind, .queue = "none", .key = std::move(key), .body = ToJsonText(body)};
}

// Splits a text into parts, at character boundaries.
std::vector<store::Change> Cut(const std::string& text, const std::string& key,
                               std::vector<std::string>& keys) {
  std::vector<store::Change> changes;
  for (size_t start = 0; start < text.size();) {
    size_t end = std::min(start + kPartBytes, text.size());
    while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
    const std::string part_key = key + "." + std::to_string(keys.size());
    // Deferred: a loss of power that takes it also takes the record that names it, written later.
    changes.push_back(store::Change::Put(Part(part_key, text.substr(start, end - start)),
                                         store::Due::Never(), true));
    keys.push_back(part_key);
    start = end;
  }
  return changes;
}

std::string PieceKey(const StoredItems& items, size_t piece) {
  return items.key + "." + std::to_string(piece);
}

// Splits the items of a Map, or the common input of a Parallel's branches, into pieces.
std::vector<store::Change> CutItems(const ChildrenProgress& children, StoredItems& stored) {
  std::vector<store::Change> changes;
  const auto add = [&](int64_t first, const std::string& text) {
    std::vector<std::string> keys;
    for (store::Change& change : Cut(text, PieceKey(stored, stored.pieces.size()), keys))
      changes.push_back(std::move(change));
    stored.pieces.push_back({.first = first, .parts = static_cast<int64_t>(keys.size())});
  };
  if (children.shared) {
    add(0, ToJsonText(*children.items));
    return changes;
  }
  std::string text;
  int64_t first = 0;
  for (size_t i = 0; i < children.items->size(); ++i) {
    text += (text.empty() ? "[" : ",") + ToJsonText((*children.items)[i]);
    if (text.size() < kItemPieceBytes && i + 1 < children.items->size()) continue;
    add(first, text + "]");
    text.clear();
    first = static_cast<int64_t>(i) + 1;
  }
  return changes;
}

std::string ItemsKey(const FlowRecord& record) {
  return record.record.key + "#items-" + std::to_string(record.flow.entry) + "-" +
         std::to_string(record.flow.retry_count);
}

}  // namespace

int64_t FlowLog::Add(Event event) {
  event.id = record_.first_event + ++record_.event_count;
  if (record_.inline_events++ > 0) record_.events += ',';
  record_.events += EventToStored(event);
  return event.id;
}

std::string KeyOf(const std::string& execution, const std::string& path) {
  return path.empty() ? execution : execution + "/" + path;
}

bool SaysRunning(std::string_view body) {
  if (body.starts_with("{\"status\":\"RUNNING\"")) return true;  // the rest is in parts
  // Inside a string these quotes would be escaped: the first match is the flow's own.
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
  // Keys of parts contain the epoch and the version: a holder that lost its record cannot overwrite
  // the parts of the next one.
  const std::string stamp =
      std::to_string(record.record.epoch) + "-" + std::to_string(record.record.version);
  const auto& children = record.flow.children ? record.flow.children : record.flow.failed_children;
  const std::string items_key = ItemsKey(record);
  if (!children || record.items.key != items_key) record.items = {};
  if (children && children->items && record.items.key.empty() &&
      JsonBytes(*children->items, kMaxInlineItems) > kMaxInlineItems) {
    record.items.key = items_key;
    encoded.parts = CutItems(*children, record.items);
  }
  if (record.inline_events > kMaxInlineEvents || record.events.size() > kMaxInlineEventBytes) {
    std::vector<std::string> keys;
    for (store::Change& change :
         Cut("[" + record.events + "]",
             record.record.key + "#history-" + std::to_string(record.event_count) + "-" + stamp,
             keys)) {
      encoded.parts.push_back(std::move(change));
    }
    record.chunks.push_back(ToJsonText(Json(keys)));
    record.events.clear();
    record.inline_events = 0;
  }
  encoded.body = BodyToJson(record);
  if (encoded.body.size() <= kMaxInlineBody) return encoded;
  std::vector<std::string> keys;
  for (store::Change& change : Cut(encoded.body, record.record.key + "#body-" + stamp, keys))
    encoded.parts.push_back(std::move(change));
  encoded.body = ToJsonText(Json{{"status", NameOf(record.flow.status)},
                                 {"parts", keys},
                                 {kVersionField, kFlowFormat.version}});
  return encoded;
}

Result<std::string> FlowCodec::LoadParts(const Json& keys) const {
  std::string text;
  for (const Json& key : keys) {
    if (!key.is_string()) return Error{Code::kCorrupt, "a part of an execution has no key"};
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

Result<FlowRecord> FlowCodec::Decode(store::Record stored) const {
  FlowRecord record;
  record.record = std::move(stored);
  const auto damaged = [&](std::string_view why) {
    return Error{
        Code::kCorrupt,
        "the record '" + record.record.key + "' is not an execution of ours: " + std::string(why),
        "use a namespace of its own for each deployment"};
  };
  try {
    const Json parts = BodyFromJson(record.record.body, record);
    if (!parts.is_null()) {
      MUSTER_ASSIGN(const std::string text, LoadParts(parts));
      BodyFromJson(text, record);
    }
  } catch (const std::exception& error) {
    const Json body = Json::parse(record.record.body, nullptr, false);
    MUSTER_TRY(CheckVersion(VersionOf(body), kFlowFormat,
                            "the record of execution '" + record.record.key + "'"));
    return damaged(error.what());
  }
  if (record.execution.empty() || record.machine.empty() || record.flow.state.empty())
    return damaged("it names no execution, definition or state");
  if (record.apart) record.within = record.record.key;
  record.info.name = record.within.empty() ? record.execution : record.within;
  if ((record.is_root() || record.apart) && !record.info.input)
    record.info.input = record.flow.input;
  return record;
}

Status FlowCodec::LoadItems(FlowRecord& record, int64_t index) const {
  ChildrenProgress& children = *record.flow.children;
  const bool at_hand =
      children.items &&
      (children.shared ||
       (index >= children.items_from &&
        index < children.items_from + static_cast<int64_t>(children.items->size())));
  if (at_hand) return {};
  const Error damaged{Code::kCorrupt, "the items of '" + record.record.key + "' are damaged"};
  const auto after =
      std::upper_bound(record.items.pieces.begin(), record.items.pieces.end(), index,
                       [](int64_t child, const auto& piece) { return child < piece.first; });
  if (after == record.items.pieces.begin()) return damaged;
  const auto piece = static_cast<size_t>(after - record.items.pieces.begin()) - 1;
  Json keys = Json::array();
  for (int64_t part = 0; part < record.items.pieces[piece].parts; ++part)
    keys.push_back(PieceKey(record.items, piece) + "." + std::to_string(part));
  MUSTER_ASSIGN(const std::string text, LoadParts(keys));
  Json items = Json::parse(text, nullptr, false);
  const int64_t first = record.items.pieces[piece].first;
  const bool holds = children.shared
                         ? !items.is_discarded()
                         : items.is_array() && index - first < static_cast<int64_t>(items.size());
  if (!holds) return damaged;
  children.items = MakeValue(std::move(items));
  children.items_from = first;
  return {};
}

Result<std::vector<Event>> FlowCodec::LoadEvents(const FlowRecord& record) const {
  std::vector<Event> events;
  const auto add = [&](const std::string& text) -> Status {
    Json list = Json::parse(text, nullptr, false);
    if (!list.is_array())
      return Error{Code::kCorrupt, "the history of '" + record.record.key + "' is damaged"};
    for (Json& event : list) events.push_back(EventFromStored(std::move(event)));
    return {};
  };
  for (const std::string& chunk : record.chunks) {
    MUSTER_ASSIGN(const std::string text, LoadParts(Json::parse(chunk, nullptr, false)));
    MUSTER_TRY(add(text));
  }
  MUSTER_TRY(add("[" + record.events + "]"));
  return events;
}

Result<std::string> FlowCodec::LoadMachine(const std::string& key) const {
  MUSTER_ASSIGN(auto stored, store_.Get(kMachineKind, key));
  if (!stored)
    return Error{Code::kCorrupt, "the definition '" + key + "' is missing from the store"};
  MUSTER_ASSIGN(const MachineBody body,
                kMachineTable.Parse(stored->body, "the definition '" + key + "'"));
  return LoadParts(Json(body.parts));
}

std::vector<store::Change> FlowCodec::MachineChanges(const std::string& key,
                                                     const std::string& text) {
  MachineBody body;
  std::vector<store::Change> changes = Cut(text, "machine-" + key, body.parts);
  changes.push_back(
      store::Change::Put(store::Record{.kind = kMachineKind,
                                       .queue = "none",
                                       .key = key,
                                       .body = ToJsonText(kMachineTable.ToJson(body))},
                         store::Due::Never()));
  return changes;
}

}  // namespace muster::states
