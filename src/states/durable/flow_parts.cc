#include "states/durable/flow_parts.h"

#include <array>

#include "core/enum_names.h"

namespace muster::states {
namespace {

using Purpose = TaskProgress::Purpose;

constexpr EnumNames<Purpose, 3> kPurposes{{{
    {Purpose::kTask, "task"},
    {Purpose::kReadItems, "read_items"},
    {Purpose::kWriteResults, "write_results"},
}}};

// One member of a stored object: written unless it has its default value, read if present.
template <class T>
struct Field {
  const char* name;
  void (*write)(const T& from, Json& json, const char* name);
  void (*read)(Json& member, T& to);
};

void Put(Json& json, const char* name, int64_t value) {
  if (value != 0) json[name] = value;
}
void Put(Json& json, const char* name, double value) {
  if (value > 0) json[name] = value;
}
void Put(Json& json, const char* name, bool value) {
  if (value) json[name] = true;
}
void Put(Json& json, const char* name, const std::string& value) {
  if (!value.empty()) json[name] = value;
}
void Put(Json& json, const char* name, const Value& value) {
  if (value) json[name] = *value;
}
void Put(Json& json, const char* name, const Json& value) {
  if (!value.is_null()) json[name] = value;
}
void Put(Json& json, const char* name, const std::optional<WallTime>& value) {
  if (value) json[name] = ToMillis(*value);
}
void Put(Json& json, const char* name, const std::optional<int64_t>& value) {
  if (value) json[name] = *value;
}
void Put(Json& json, const char* name, const std::set<int64_t>& value) {
  if (!value.empty()) json[name] = value;
}
void Put(Json& json, const char* name, Purpose value) {
  if (value != Purpose::kTask) json[name] = kPurposes.NameOf(value);
}
void Put(Json& json, const char* name, const std::optional<Failure>& value) {
  if (value) json[name] = {{"error", value->error}, {"cause", value->cause}};
}

void Take(Json& json, int64_t& value) { value = json.get<int64_t>(); }
void Take(Json& json, double& value) { value = json.get<double>(); }
void Take(Json& json, bool& value) { value = json.get<bool>(); }
void Take(Json& json, std::string& value) { value = json.get<std::string>(); }
void Take(Json& json, Value& value) { value = MakeValue(std::move(json)); }
void Take(Json& json, Json& value) { value = std::move(json); }
void Take(Json& json, std::optional<WallTime>& value) { value = FromMillis(json.get<int64_t>()); }
void Take(Json& json, std::optional<int64_t>& value) { value = json.get<int64_t>(); }
void Take(Json& json, std::set<int64_t>& value) {
  for (const Json& element : json) value.insert(element.get<int64_t>());
}
void Take(Json& json, Purpose& value) {
  // Records of version 0 have its number.
  const auto known = json.is_number_integer()
                         ? std::optional(static_cast<Purpose>(json.get<int64_t>()))
                         : kPurposes.Find(json.get<std::string>());
  if (!known || kPurposes.NameOf(*known).empty())
    throw Json::Exception("unknown purpose of a call");
  value = *known;
}
void Take(Json& json, std::optional<Failure>& value) {
  value = Failure{.error = json.at("error").get<std::string>(),
                  .cause = json.at("cause").get<std::string>(),
                  .internal = false};
}

template <class Member>
struct ClassOfMember;
template <class T, class V>
struct ClassOfMember<V T::*> {
  using Type = T;
};

template <auto kMember>
constexpr auto Plain(const char* name) {
  using T = typename ClassOfMember<decltype(kMember)>::Type;
  return Field<T>{name,
                  [](const T& from, Json& json, const char* key) { Put(json, key, from.*kMember); },
                  [](Json& member, T& to) { Take(member, to.*kMember); }};
}

constexpr std::array<Field<TaskProgress>, 8> kTaskFields{{
    Plain<&TaskProgress::resource>("resource"),
    Plain<&TaskProgress::token>("token"),
    Plain<&TaskProgress::purpose>("purpose"),
    {"input",
     [](const TaskProgress& from, Json& json, const char* name) {
       // Not stored: the process that makes the call collects the content again.
       if (from.purpose != Purpose::kWriteResults) Put(json, name, from.input);
     },
     [](Json& member, TaskProgress& to) { Take(member, to.input); }},
    Plain<&TaskProgress::credentials>("credentials"),
    Plain<&TaskProgress::deadline>("deadline"),
    Plain<&TaskProgress::heartbeat_s>("heartbeat"),
    {"resume",
     [](const TaskProgress& from, Json& json, const char* name) {
       if (from.pending) json[name] = from.resume;
     },
     [](Json& member, TaskProgress& to) {
       to.pending = true;
       to.resume = std::move(member);
     }},
}};

// A call to cancel, which is pending.
constexpr std::array<Field<TaskProgress>, 4> kCancelFields{{
    Plain<&TaskProgress::resource>("resource"),
    Plain<&TaskProgress::token>("token"),
    {"resume",
     [](const TaskProgress& from, Json& json, const char* name) { json[name] = from.resume; },
     [](Json& member, TaskProgress& to) { to.resume = std::move(member); }},
    Plain<&TaskProgress::input>("input"),
}};

constexpr std::array<Field<ChildrenProgress>, 9> kChildrenFields{{
    Plain<&ChildrenProgress::total>("total"),
    Plain<&ChildrenProgress::started>("started"),
    Plain<&ChildrenProgress::concurrency>("concurrency"),
    Plain<&ChildrenProgress::failed>("failed"),
    Plain<&ChildrenProgress::tolerated_count>("tolerated"),
    Plain<&ChildrenProgress::tolerated_percentage>("percentage"),
    Plain<&ChildrenProgress::settled_below>("below"),
    Plain<&ChildrenProgress::shared>("shared"),
    Plain<&ChildrenProgress::settled>("settled"),
}};
constexpr Field<ChildrenProgress> kItems = Plain<&ChildrenProgress::items>("items");

constexpr std::array<Field<ResultsProgress>, 7> kResultsFields{{
    Plain<&ResultsProgress::parameters>("parameters"),
    Plain<&ResultsProgress::folder>("folder"),
    Plain<&ResultsProgress::list>("list"),
    Plain<&ResultsProgress::only_succeeded>("only_succeeded"),
    Plain<&ResultsProgress::next>("next"),
    Plain<&ResultsProgress::files>("files"),
    Plain<&ResultsProgress::failure>("failure"),
}};

template <class Fields, class T>
Json ToJson(const Fields& fields, const T& from) {
  Json json = Json::object();
  for (const Field<T>& field : fields) field.write(from, json, field.name);
  return json;
}

template <class T>
void ReadField(const Field<T>& field, Json& json, T& to) {
  const auto found = json.find(field.name);
  if (found != json.end()) field.read(*found, to);
}

template <class T, class Fields>
T FromJson(const Fields& fields, Json& json) {
  T to;
  for (const Field<T>& field : fields) ReadField(field, json, to);
  return to;
}

}  // namespace

int64_t ToMillis(WallTime time) { return time.time_since_epoch().count(); }
WallTime FromMillis(int64_t millis) { return WallTime(std::chrono::milliseconds(millis)); }

Json TaskToJson(const TaskProgress& task) { return ToJson(kTaskFields, task); }

TaskProgress TaskFromJson(Json json) {
  auto task = FromJson<TaskProgress>(kTaskFields, json);
  if (!task.input) task.input = MakeValue(Json::object());
  return task;
}

Json ChildrenToJson(const ChildrenProgress& children, bool with_items) {
  Json json = ToJson(kChildrenFields, children);
  if (with_items) kItems.write(children, json, kItems.name);
  return json;
}

ChildrenProgress ChildrenFromJson(Json json) {
  auto children = FromJson<ChildrenProgress>(kChildrenFields, json);
  ReadField(kItems, json, children);
  return children;
}

Json ResultsToJson(const ResultsProgress& results) { return ToJson(kResultsFields, results); }

ResultsProgress ResultsFromJson(Json json) {
  return FromJson<ResultsProgress>(kResultsFields, json);
}

Json CancelToJson(const TaskProgress& call) { return ToJson(kCancelFields, call); }

TaskProgress CancelFromJson(Json json) {
  for (const char* name : {"resource", "token", "resume"}) json.at(name);  // throws: missing
  auto call = FromJson<TaskProgress>(kCancelFields, json);
  call.pending = true;
  if (!call.input) call.input = MakeValue(Json::object());
  return call;
}

}  // namespace muster::states
