#include "plan/compile/state_table.h"

#include "core/record_fields.h"
#include "muster/store.h"
#include "plan/compile/arrangement.h"
#include "plan/compile/compile.h"
#include "plan/model/order.h"

namespace muster::plan {
namespace {

constexpr const char* kKind = "plan.states";
constexpr const char* kQueue = "default";
constexpr size_t kMaxPartBytes = 200'000;  // a body may have 350 KB
constexpr int64_t kMaxParts = 1'000;

constexpr EnumNames<StateRole, 7> kRoles{{{
    {StateRole::kTask, "task"},
    {StateRole::kFirst, "first"},
    {StateRole::kStep, "step"},
    {StateRole::kLast, "last"},
    {StateRole::kNotify, "notify"},
    {StateRole::kReconcile, "reconcile"},
    {StateRole::kRankDone, "rank_done"},
}}};

std::string KeyOf(const std::string& execution, int64_t part) {
  return execution + "/" + std::to_string(part);
}

constexpr RecordFields<PlanState, 4> kStateFields{{
    Required<PlanState, &PlanState::rank>("rank"),
    Named<PlanState, &PlanState::role, kRoles>("role"),
    Field<PlanState, &PlanState::phase, ByName<kPhaseNames>>("phase"),
    Field<PlanState, &PlanState::task>("task"),
}};

// A record: some of the states, by name.
struct Part {
  int64_t parts = 0;  // in all
  Json states = Json::object();
};
constexpr RecordTable<Part, 2> kPartTable{
    RecordFormat{kKind, 1},
    {{Required<Part, &Part::parts>("parts"), Required<Part, &Part::states>("states")}}};

Json StateJson(const PlanState& state) { return Nested<kStateFields>::Write(state); }

Result<PlanState> ReadState(const Json& json, const std::string& name) {
  PlanState state;
  JsonFields fields(json);
  ReadMembers(kStateFields, fields, state);
  MUSTER_TRY(fields.Check("the entry of state '" + name + "'"));
  return state;
}

// A large table is several records.
std::vector<Json> PartsOf(const StateTable& states) {
  std::vector<Json> parts{Json::object()};
  size_t bytes = 0;
  for (const auto& [name, state] : states) {
    Json json = StateJson(state);
    const size_t more = name.size() + ToJsonText(json).size();
    if (bytes + more > kMaxPartBytes) {
      parts.push_back(Json::object());
      bytes = 0;
    }
    bytes += more;
    parts.back()[name] = std::move(json);
  }
  return parts;
}

Status WritePart(store::Store& store, const std::string& key, const Json& body) {
  return store::Update(
      store, kKind, key,
      [&](std::optional<store::Record> found) -> Result<std::optional<store::Change>> {
        if (found && Json::parse(found->body, nullptr, false) == body) return std::nullopt;
        store::Record record =
            std::move(found).value_or(store::Record{.kind = kKind, .queue = kQueue, .key = key});
        record.body = ToJsonText(body);
        return store::Change::Put(std::move(record), store::Due::Never());
      });
}

}  // namespace

Status WriteStates(store::Store& store, const std::string& execution, const StateTable& states) {
  const std::vector<Json> parts = PartsOf(states);
  // The first part is written last: if it exists, all do.
  for (size_t i = parts.size(); i-- > 0;) {
    const Part part{.parts = static_cast<int64_t>(parts.size()), .states = parts[i]};
    MUSTER_TRY(
        WritePart(store, KeyOf(execution, static_cast<int64_t>(i)), kPartTable.ToJson(part)));
  }
  return {};
}

Result<std::optional<StateTable>> ReadStates(store::Store& store, const std::string& execution) {
  StateTable states;
  int64_t parts = 1;
  for (int64_t i = 0; i < parts; ++i) {
    const std::string key = KeyOf(execution, i);
    const std::string what = "the state table '" + key + "'";
    MUSTER_ASSIGN(const auto found, store.Get(kKind, key));
    if (!found && i == 0) return std::optional<StateTable>();
    if (!found) return Error{Code::kCorrupt, what + " is missing"};
    MUSTER_ASSIGN(const Part part, kPartTable.Parse(found->body, what));
    parts = part.parts;
    if (parts < 1 || parts > kMaxParts) return Error{Code::kCorrupt, what + " is damaged"};
    for (const auto& [name, json] : part.states.items()) {
      auto state = ReadState(json, name);
      if (!state) return state.error().Within(what);
      states[name] = *std::move(state);
    }
  }
  return std::optional<StateTable>(std::move(states));
}

StateTable StatesOf(const Plan& plan, const Profile& profile) {
  return Compile(plan, profile, Arrange(plan, Order(plan)), {.inline_ranks = true}).states;
}

}  // namespace muster::plan
