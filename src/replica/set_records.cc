#include "replica/set_records.h"

#include <algorithm>

#include "base/json.h"

namespace muster {
namespace {

constexpr std::string_view kPhaseNames[] = {"pending",  "ready",   "running",
                                            "stopping", "stopped", "dead"};

Result<Json> ParseBody(const std::string& body, std::string_view what) {
  Json json = Json::parse(body, nullptr, /*throws=*/false);
  if (json.is_object()) return json;
  return Error{
      Code::kCorrupt,
      "the record of a " + std::string(what) + " is not one of ours: " + body.substr(0, 200),
      "use a namespace of its own for each deployment"};
}

// Fields that are missing or of another type keep their defaults: records of a newer version may
// have more, and of an older one less.
template <class T>
void Read(const Json& json, const char* name, T& value) {
  const auto found = json.find(name);
  if (found == json.end()) return;
  if constexpr (std::is_same_v<T, std::string>) {
    if (found->is_string()) value = found->template get<std::string>();
  } else if constexpr (std::is_same_v<T, bool>) {
    if (found->is_boolean()) value = found->template get<bool>();
  } else if constexpr (std::is_integral_v<T>) {
    if (found->is_number_integer()) value = found->template get<T>();
  } else {
    if (!found->is_array()) return;
    value.clear();
    for (const Json& item : *found) {
      if constexpr (std::is_same_v<typename T::value_type, std::string>) {
        if (item.is_string()) value.push_back(item.get<std::string>());
      } else {
        if (item.is_number_integer()) value.push_back(item.get<int>());
      }
    }
  }
}

}  // namespace

std::string SetKey(const std::string& set) { return set + "/set"; }
std::string MemberKey(const std::string& set, const std::string& id) {
  return set + "/member/" + id;
}
std::string ProjectionKey(const std::string& set, const std::string& projection) {
  return set + "/projection/" + projection;
}
std::string ScaleKey(const std::string& set) { return set + "/scale"; }
std::string SignalKey(const std::string& set) { return set + "/signal"; }
std::string SuspectKey(const std::string& set, const std::string& projection, int64_t position) {
  return set + "/suspect/" + projection + "/" + std::to_string(position);
}

std::string Generation::ToBody() const {
  Json json{{"generation", number},
            {"phase", phase == Phase::kRunning ? "running" : "preparing"},
            {"strategy", strategy == Strategy::kIncremental ? "incremental" : "recreate"},
            {"partitions", assignment.members.size()},
            {"members", assignment.members},
            {"slots", slots},
            {"owners", assignment.owners},
            {"projections", projections},
            {"reason", reason},
            {"since_ms", since_ms}};
  return ToJsonText(json);
}

Result<Generation> Generation::FromBody(const std::string& body) {
  MUSTER_ASSIGN(const Json json, ParseBody(body, "replica set"));
  Generation generation;
  std::string phase, strategy;
  Read(json, "generation", generation.number);
  Read(json, "phase", phase);
  Read(json, "strategy", strategy);
  Read(json, "slots", generation.slots);
  Read(json, "members", generation.assignment.members);
  Read(json, "owners", generation.assignment.owners);
  Read(json, "projections", generation.projections);
  Read(json, "reason", generation.reason);
  Read(json, "since_ms", generation.since_ms);
  generation.phase = phase == "running" ? Phase::kRunning : Phase::kPreparing;
  generation.strategy = strategy == "incremental" ? Strategy::kIncremental : Strategy::kRecreate;
  const auto count = static_cast<int>(generation.assignment.members.size());
  const bool owned =
      std::all_of(generation.assignment.owners.begin(), generation.assignment.owners.end(),
                  [&](int owner) { return owner >= 0 && owner < count; });
  if (generation.number < 1 || !owned) {
    return Error{Code::kCorrupt,
                 "the record of a replica set makes no sense: " + body.substr(0, 200)};
  }
  return generation;
}

std::string_view PhaseName(MemberState::Phase phase) {
  return kPhaseNames[static_cast<size_t>(phase)];
}

bool MemberState::ReadyFor(int64_t wanted) const {
  if (generation != wanted) return false;
  return phase == Phase::kReady || phase == Phase::kRunning;
}

std::string MemberState::ToBody() const {
  Json json{{"state", PhaseName(phase)},
            {"generation", generation},
            {"name", name},
            {"handled", handled},
            {"pause_ms", pause_ms}};
  if (!error.empty()) json["error"] = error.substr(0, 1000);
  if (!stopped.empty()) json["stopped"] = stopped;
  return ToJsonText(json);
}

Result<MemberState> MemberState::FromBody(const std::string& body) {
  MUSTER_ASSIGN(const Json json, ParseBody(body, "worker"));
  MemberState member;
  std::string phase;
  Read(json, "state", phase);
  Read(json, "generation", member.generation);
  Read(json, "name", member.name);
  Read(json, "handled", member.handled);
  Read(json, "pause_ms", member.pause_ms);
  Read(json, "error", member.error);
  Read(json, "stopped", member.stopped);
  const auto* const found = std::find(std::begin(kPhaseNames), std::end(kPhaseNames), phase);
  if (found == std::end(kPhaseNames)) {
    return Error{Code::kCorrupt, "a worker's state '" + phase + "' is not known"};
  }
  member.phase = static_cast<Phase>(found - std::begin(kPhaseNames));
  return member;
}

std::string DesiredState::ToBody() const {
  return ToJsonText(Json{{"paused", paused},
                         {"active", active},
                         {"versions", versions},
                         {"held", held},
                         {"touched", touched}});
}

Result<DesiredState> DesiredState::FromBody(const std::string& body) {
  MUSTER_ASSIGN(const Json json, ParseBody(body, "projection"));
  DesiredState desired;
  Read(json, "paused", desired.paused);
  Read(json, "active", desired.active);
  Read(json, "versions", desired.versions);
  Read(json, "held", desired.held);
  Read(json, "touched", desired.touched);
  return desired;
}

std::string Suspect::ToBody() const {
  return ToJsonText(Json{
      {"projection", projection}, {"version", version}, {"position", position}, {"hangs", hangs}});
}

Result<Suspect> Suspect::FromBody(const std::string& body) {
  MUSTER_ASSIGN(const Json json, ParseBody(body, "suspect"));
  Suspect suspect;
  Read(json, "projection", suspect.projection);
  Read(json, "version", suspect.version);
  Read(json, "position", suspect.position);
  Read(json, "hangs", suspect.hangs);
  return suspect;
}

Result<std::vector<std::string>> ListSets(Store& store) {
  std::vector<std::string> sets;
  for (std::string after;;) {
    MUSTER_ASSIGN(const std::vector<Record> next, store.Scan(kReplicaKind, "", after, 1));
    if (next.empty()) return sets;
    sets.push_back(next.front().key.substr(0, next.front().key.find('/')));
    after = sets.back() + "/\x7f";  // behind all of its records: their names are plain
  }
}

Result<SetView> ReadSet(Store& store, const std::string& set) {
  SetView view;
  view.set_record = Record{.kind = kReplicaKind, .queue = kReplicaQueue, .key = SetKey(set)};
  const std::string prefix = set + "/";
  const std::string member = prefix + "member/", projection = prefix + "projection/",
                    suspect = prefix + "suspect/";
  std::string after;
  for (;;) {
    MUSTER_ASSIGN(std::vector<Record> page, store.Scan(kReplicaKind, prefix, after, kMaxBatch));
    const bool last = page.size() < static_cast<size_t>(kMaxBatch);
    if (!last) after = page.back().key;
    for (Record& record : page) {
      if (record.key == view.set_record.key) {
        MUSTER_ASSIGN(view.generation, Generation::FromBody(record.body));
        view.set_record = std::move(record);
      } else if (record.key == ScaleKey(set)) {
        MUSTER_ASSIGN(const Json json, ParseBody(record.body, "scale"));
        int most = 0;
        Read(json, "workers", most);
        if (most > 0) view.scale = most;
      } else if (record.key.starts_with(member)) {
        MUSTER_ASSIGN(MemberState state, MemberState::FromBody(record.body));
        std::string id = record.key.substr(member.size());
        view.members[id] = {std::move(record), std::move(state)};
      } else if (record.key.starts_with(projection)) {
        MUSTER_ASSIGN(view.projections[record.key.substr(projection.size())],
                      DesiredState::FromBody(record.body));
      } else if (record.key.starts_with(suspect)) {
        MUSTER_ASSIGN(const Suspect hung, Suspect::FromBody(record.body));
        view.suspects.push_back(hung);
      }
    }
    if (last) return view;
  }
}

Status CheckReplicaName(std::string_view what, std::string_view name) {
  const bool plain = std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.';
  });
  if (plain && !name.empty() && name.size() <= 100) return {};
  return Error{
      Code::kInvalid,
      std::string(what) + " '" + std::string(name.substr(0, 100)) + "' is not a plain name",
      "use up to 100 letters, digits, '-', '_' and '.'"};
}

}  // namespace muster
