#include "states/durable/flow_codec.h"

#include <simdjson.h>

#include <array>
#include <charconv>

#include "core/enum_names.h"
#include "core/record_version.h"
#include "states/durable/flow_parts.h"
#include "states/durable/object_text.h"
#include "states/run/interpreter.h"

namespace muster::states {
namespace {

namespace ondemand = simdjson::ondemand;

// A body ends with its history, which stays text, and begins with the length of that text.
constexpr std::string_view kTail = "{\"tail\":";
constexpr std::string_view kEvents = ",\"events\":[";
constexpr std::string_view kEnd = "]}";

constexpr EnumNames<Wants, 5> kWants{{{
    {Wants::kNothing, "nothing"},
    {Wants::kTask, "task"},
    {Wants::kCallback, "callback"},
    {Wants::kTimer, "timer"},
    {Wants::kChildren, "children"},
}}};

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

// One member of a stored object: written unless it has its default value, read if present.
// `with_items`: the items of a Map are stored in the record.
template <class T>
struct Field {
  std::string_view name;
  void (*write)(const T& from, bool with_items, ObjectText& json, std::string_view name);
  void (*read)(ondemand::value& value, T& to);
};

void Put(ObjectText& json, std::string_view name, int value) {
  if (value != 0) json.Number(name, value);
}
void Put(ObjectText& json, std::string_view name, int64_t value) {
  if (value != 0) json.Number(name, value);
}
void Put(ObjectText& json, std::string_view name, bool value) {
  if (value) json.Flag(name);
}
void Put(ObjectText& json, std::string_view name, const std::string& value) {
  if (!value.empty()) json.Text(name, value);
}
void Put(ObjectText& json, std::string_view name, const Value& value) {
  if (value) json.Value(name, *value);
}
void Put(ObjectText& json, std::string_view name, WallTime value) {
  if (value != WallTime{}) json.Number(name, ToMillis(value));
}
void Put(ObjectText& json, std::string_view name, const std::optional<WallTime>& value) {
  if (value) json.Number(name, ToMillis(*value));
}
void Put(ObjectText& json, std::string_view name, const std::optional<int64_t>& value) {
  if (value) json.Number(name, *value);
}
void Put(ObjectText& json, std::string_view name, Wants value) {
  if (value != Wants::kNothing) json.Text(name, kWants.NameOf(value));
}
void Put(ObjectText& json, std::string_view name, FlowStatus value) {
  json.Text(name, NameOf(value));
}

void Take(ondemand::value& value, int& to) { to = static_cast<int>(int64_t(value.get_int64())); }
void Take(ondemand::value& value, int64_t& to) { to = value.get_int64(); }
void Take(ondemand::value& /*value*/, bool& to) { to = true; }
void Take(ondemand::value& value, std::string& to) { to = TextOf(value); }
void Take(ondemand::value& value, Value& to) { to = ValueOf(value); }
void Take(ondemand::value& value, WallTime& to) { to = TimeOf(value); }
void Take(ondemand::value& value, std::optional<WallTime>& to) { to = TimeOf(value); }
void Take(ondemand::value& value, std::optional<int64_t>& to) { to = value.get_int64(); }
void Take(ondemand::value& value, Wants& to) {
  // Records of version 0 have its number.
  const auto known = value.type() == ondemand::json_type::number
                         ? std::optional(static_cast<Wants>(int64_t(value.get_int64())))
                         : kWants.Find(std::string_view(value.get_string()));
  if (!known || kWants.NameOf(*known).empty()) throw Json::Exception("unknown kind of wait");
  to = *known;
}
void Take(ondemand::value& value, FlowStatus& to) {
  const std::string name = TextOf(value);
  const auto known = FindFlowStatus(name);
  if (!known) throw Json::Exception("unknown status '" + name + "'");
  to = *known;
}

template <class Member>
struct ClassOfMember;
template <class T, class V>
struct ClassOfMember<V T::*> {
  using Type = T;
};

template <auto kMember>
constexpr auto Plain(std::string_view name) {
  using T = typename ClassOfMember<decltype(kMember)>::Type;
  return Field<T>{name,
                  [](const T& from, bool, ObjectText& json, std::string_view key) {
                    Put(json, key, from.*kMember);
                  },
                  [](ondemand::value& value, T& to) { Take(value, to.*kMember); }};
}

// A flow that succeeded needs neither its input nor its variables.
bool NeedsInput(const Flow& flow) { return flow.status != FlowStatus::kSucceeded; }

void PutVariables(const Flow& from, bool /*with_items*/, ObjectText& json, std::string_view name) {
  if (from.variables.empty() || !NeedsInput(from)) return;
  Json variables = Json::object();
  for (const auto& [variable, value] : from.variables) variables[variable] = *value;
  json.Value(name, variables);
}

void TakeVariables(ondemand::value& value, Flow& to) {
  for (ondemand::field variable : value.get_object()) {
    const std::string name(std::string_view(variable.unescaped_key()));
    to.variables[name] = ValueOf(variable.value());
  }
}

template <auto kMember>
constexpr Field<Flow> Children(std::string_view name) {
  return {name,
          [](const Flow& from, bool with_items, ObjectText& json, std::string_view key) {
            if (from.*kMember) json.Value(key, ChildrenToJson(*(from.*kMember), with_items));
          },
          [](ondemand::value& value, Flow& to) { to.*kMember = ChildrenFromJson(JsonOf(value)); }};
}

// SaysRunning expects the state and the status at the beginning.
constexpr std::array<Field<Flow>, 25> kFlowFields{{
    Plain<&Flow::state>("state"),
    Plain<&Flow::status>("status"),
    Plain<&Flow::machine>("machine"),
    Plain<&Flow::path>("path"),
    Plain<&Flow::wants>("wants"),
    Plain<&Flow::inside>("inside"),
    Plain<&Flow::entry>("entry"),
    Plain<&Flow::entered_event>("entered"),
    Plain<&Flow::last_event>("last"),
    Plain<&Flow::entered_time>("entered_time"),
    Plain<&Flow::retry_count>("retries"),
    {"retriers",
     [](const Flow& from, bool, ObjectText& json, std::string_view name) {
       if (from.retry_count != 0) json.Value(name, from.retrier_counts);
     },
     [](ondemand::value& value, Flow& to) {
       for (int64_t count : value.get_array()) to.retrier_counts.push_back(count);
     }},
    Plain<&Flow::backing_off>("backing_off"),
    Plain<&Flow::due>("due"),
    {"task",
     [](const Flow& from, bool, ObjectText& json, std::string_view name) {
       if (from.task) json.Value(name, TaskToJson(*from.task));
     },
     [](ondemand::value& value, Flow& to) { to.task = TaskFromJson(JsonOf(value)); }},
    Children<&Flow::children>("children"),
    Children<&Flow::failed_children>("failed_children"),
    {"results",
     [](const Flow& from, bool, ObjectText& json, std::string_view name) {
       if (from.results) json.Value(name, ResultsToJson(*from.results));
     },
     [](ondemand::value& value, Flow& to) { to.results = ResultsFromJson(JsonOf(value)); }},
    Plain<&Flow::map_index>("index"),
    {"input",
     [](const Flow& from, bool, ObjectText& json, std::string_view name) {
       if (NeedsInput(from)) Put(json, name, from.input);
     },
     [](ondemand::value& value, Flow& to) { Take(value, to.input); }},
    {"item",
     [](const Flow& from, bool, ObjectText& json, std::string_view name) {
       // Usually the item is also its iteration's input.
       if (from.map_value != from.input) Put(json, name, from.map_value);
     },
     [](ondemand::value& value, Flow& to) { Take(value, to.map_value); }},
    {"variables", PutVariables, TakeVariables},
    Plain<&Flow::output>("output"),
    {"error",
     [](const Flow& from, bool, ObjectText& json, std::string_view name) {
       Put(json, name, from.failure.error);
     },
     [](ondemand::value& value, Flow& to) { Take(value, to.failure.error); }},
    {"cause",
     [](const Flow& from, bool, ObjectText& json, std::string_view name) {
       Put(json, name, from.failure.cause);
     },
     [](ondemand::value& value, Flow& to) { Take(value, to.failure.cause); }},
}};

template <class T, size_t N>
void WriteFields(const std::array<Field<T>, N>& fields, const T& from, bool with_items,
                 ObjectText& json) {
  for (const Field<T>& field : fields) field.write(from, with_items, json, field.name);
}

// Members that are not in the table are ignored.
template <class T, size_t N>
void ReadField(const std::array<Field<T>, N>& fields, std::string_view name, ondemand::value& value,
               T& to) {
  for (const Field<T>& field : fields) {
    if (field.name != name) continue;
    field.read(value, to);
    return;
  }
}

// Checks what the interpreter relies on.
void CheckFlow(const Flow& flow) {
  if (flow.ended()) return;
  const bool calls = flow.wants == Wants::kTask || flow.wants == Wants::kCallback;
  if (calls && !flow.task) throw Json::Exception("it waits for a call, but has none");
  if (flow.wants == Wants::kChildren && !flow.children)
    throw Json::Exception("it waits for branches, but has none");
}

std::string FlowToJson(const Flow& flow, bool with_items) {
  ObjectText json;
  WriteFields(kFlowFields, flow, with_items, json);
  return std::move(json).Close();
}

Flow FlowFromJson(ondemand::object json) {
  Flow flow;
  for (ondemand::field member : json) {
    const std::string_view name = member.unescaped_key();
    ondemand::value value = member.value();
    ReadField(kFlowFields, name, value, flow);
  }
  flow.failure.internal = false;
  if (!flow.input) flow.input = MakeValue(Json::object());
  if (flow.map_index && !flow.map_value) flow.map_value = flow.input;
  CheckFlow(flow);
  return flow;
}

Json ItemsToJson(const StoredItems& items) {
  Json pieces = Json::array();
  for (const StoredItems::Piece& piece : items.pieces) pieces.push_back({piece.first, piece.parts});
  return {{"key", items.key}, {"pieces", std::move(pieces)}};
}

StoredItems ItemsFromJson(const Json& json) {
  StoredItems items{.key = json.at("key").get<std::string>()};
  for (const Json& piece : json.at("pieces"))
    items.pieces.push_back({piece.at(0).get<int64_t>(), piece.at(1).get<int64_t>()});
  return items;
}

// An array without its brackets.
std::string ElementsOf(ondemand::value& array) {
  const std::string_view text = RawOf(array);
  return std::string(text.substr(1, text.rfind(']') - 1));
}

template <auto kMember>
constexpr Field<FlowRecord> Count(std::string_view name) {
  return {name,
          [](const FlowRecord& from, bool, ObjectText& json, std::string_view key) {
            json.Number(key, from.*kMember);
          },
          [](ondemand::value& value, FlowRecord& to) { Take(value, to.*kMember); }};
}

constexpr std::array<Field<FlowRecord>, 21> kBodyFields{{
    Plain<&FlowRecord::execution>("execution"),
    Plain<&FlowRecord::machine>("definition"),
    {"machine_name",
     [](const FlowRecord& from, bool, ObjectText& json, std::string_view name) {
       json.Text(name, from.info.machine_name);
     },
     [](ondemand::value& value, FlowRecord& to) { Take(value, to.info.machine_name); }},
    {"start",
     [](const FlowRecord& from, bool, ObjectText& json, std::string_view name) {
       json.Number(name, ToMillis(from.info.start));
     },
     [](ondemand::value& value, FlowRecord& to) { Take(value, to.info.start); }},
    {"flow",
     [](const FlowRecord& from, bool with_items, ObjectText& json, std::string_view name) {
       json.Raw(name, FlowToJson(from.flow, with_items));
     },
     [](ondemand::value& value, FlowRecord& to) { to.flow = FlowFromJson(value.get_object()); }},
    {"items",
     [](const FlowRecord& from, bool with_items, ObjectText& json, std::string_view name) {
       if (!with_items) json.Value(name, ItemsToJson(from.items));
     },
     [](ondemand::value& value, FlowRecord& to) { to.items = ItemsFromJson(*ValueOf(value)); }},
    {"redrives",
     [](const FlowRecord& from, bool, ObjectText& json, std::string_view name) {
       Put(json, name, from.info.redrive_count);
     },
     [](ondemand::value& value, FlowRecord& to) { Take(value, to.info.redrive_count); }},
    {"input",
     [](const FlowRecord& from, bool, ObjectText& json, std::string_view name) {
       if ((from.is_root() || from.apart) && from.flow.entry > 0) Put(json, name, from.info.input);
     },
     [](ondemand::value& value, FlowRecord& to) { Take(value, to.info.input); }},
    Plain<&FlowRecord::deadline>("deadline"),
    Plain<&FlowRecord::stop>("stop"),
    Plain<&FlowRecord::parent>("parent"),
    Plain<&FlowRecord::apart>("apart"),
    {"within",
     [](const FlowRecord& from, bool, ObjectText& json, std::string_view name) {
       if (!from.apart) Put(json, name, from.within);
     },
     [](ondemand::value& value, FlowRecord& to) { Take(value, to.within); }},
    Plain<&FlowRecord::cleanup>("cleanup"),
    {"cancel",
     [](const FlowRecord& from, bool, ObjectText& json, std::string_view name) {
       if (from.cancel) json.Value(name, CancelToJson(*from.cancel));
     },
     [](ondemand::value& value, FlowRecord& to) { to.cancel = CancelFromJson(*ValueOf(value)); }},
    {"poll",
     [](const FlowRecord& from, bool, ObjectText& json, std::string_view name) {
       Put(json, name, int64_t{from.poll.count()});
     },
     [](ondemand::value& value, FlowRecord& to) {
       to.poll = milliseconds(int64_t(value.get_int64()));
     }},
    {"chunks",
     [](const FlowRecord& from, bool, ObjectText& json, std::string_view name) {
       if (!from.chunks.empty()) json.Value(name, from.chunks);
     },
     [](ondemand::value& value, FlowRecord& to) {
       to.chunks = ValueOf(value)->get<std::vector<std::string>>();
     }},
    Count<&FlowRecord::first_event>("first_event"),
    Count<&FlowRecord::event_count>("event_count"),
    Count<&FlowRecord::inline_events>("inline_events"),
    Plain<&FlowRecord::branch_events>("branch_events"),
}};

}  // namespace

std::string BodyToJson(const FlowRecord& record) {
  ObjectText body;
  body.Number("tail", static_cast<int64_t>(kEvents.size() + record.events.size() + kEnd.size()))
      .Number(kVersionField, kFlowFormat.version);
  WriteFields(kBodyFields, record, record.items.key.empty(), body);
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
  int64_t version = 0;
  ondemand::document document = parser.iterate(text);
  for (ondemand::field field : document.get_object()) {
    const std::string_view name = field.unescaped_key();
    ondemand::value value = field.value();
    if (name == kVersionField) {
      Take(value, version);
    } else if (name == "events") {
      record.events = ElementsOf(value);
    } else if (name == "parts") {
      parts = *ValueOf(value);
    } else {
      ReadField(kBodyFields, name, value, record);
    }
  }
  if (version > kFlowFormat.version) throw Json::Exception("a newer version of muster wrote it");
  return parts;
}

}  // namespace muster::states
