#include "replica/set_records.h"

#include <algorithm>

#include "core/json_fields.h"
#include "core/record_version.h"

namespace muster::replica {
namespace {

constexpr std::string_view kPhaseNames[] = {"pending",  "ready",   "running",
                                            "stopping", "stopped", "dead"};

// Of all records of a set. Those without a version are of format 0, which has the same fields.
constexpr RecordFormat kFormat{kReplicaKind, 1};

// Missing fields keep their defaults: older versions wrote fewer. `what`: "the record of a worker".
Result<JsonFields> Fields(const std::string& body, std::string_view what) {
  Json json = Json::parse(body, nullptr, /*throws=*/false);
  MUSTER_TRY(CheckVersion(VersionOf(json), kFormat, what));
  return JsonFields(std::move(json));
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
std::string SuspectKey(const std::string& set, const std::string& projection, int version,
                       const std::string& worker) {
  return set + "/suspect/" + projection + "/" + std::to_string(version) + "/" + worker;
}

std::string_view PhaseName(Generation::Phase phase) {
  return phase == Generation::Phase::kRunning ? "running" : "preparing";
}

std::string Generation::ToBody() const {
  Json json{{kVersionField, kFormat.version},
            {"generation", number},
            {"phase", PhaseName(phase)},
            {"strategy", strategy == Strategy::kIncremental ? "incremental" : "recreate"},
            {"partitions", assignment.members.size()},
            {"members", assignment.members},
            {"slots", slots},
            {"owners", assignment.owners},
            {"projections", projections},
            {"reason", reason},
            {"since_ms", since_ms}};
  if (!orphans.empty()) json["orphans"] = orphans;
  return ToJsonText(json);
}

Result<Generation> Generation::FromBody(const std::string& body) {
  constexpr std::string_view kWhat = "the record of a replica set";
  Generation generation;
  std::string phase, strategy;
  MUSTER_ASSIGN(JsonFields fields, Fields(body, kWhat));
  fields.Read("generation", generation.number)
      .Read("phase", phase)
      .Read("strategy", strategy)
      .Read("slots", generation.slots)
      .Read("members", generation.assignment.members)
      .Read("owners", generation.assignment.owners)
      .Read("projections", generation.projections)
      .Read("orphans", generation.orphans)
      .Read("reason", generation.reason)
      .Read("since_ms", generation.since_ms);
  MUSTER_TRY(fields.Check(kWhat));
  generation.phase = phase == PhaseName(Phase::kRunning) ? Phase::kRunning : Phase::kPreparing;
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

std::string StoppedName(const std::string& projection, int version) {
  return projection + "@" + std::to_string(version);
}

bool MemberState::ReadyFor(int64_t wanted) const {
  if (generation != wanted) return false;
  return phase == Phase::kReady || phase == Phase::kRunning;
}

std::string MemberState::ToBody() const {
  Json json{{kVersionField, kFormat.version},
            {"state", PhaseName(phase)},
            {"generation", generation},
            {"name", name},
            {"handled", handled},
            {"pause_ms", pause_ms}};
  if (!error.empty()) json["error"] = error.substr(0, 1000);
  if (!projections.empty()) json["projections"] = projections;
  if (!stopped.empty()) json["stopped"] = stopped;
  if (!serial.empty()) json["serial"] = serial;
  if (busy) json["busy"] = true;
  return ToJsonText(json);
}

Result<MemberState> MemberState::FromBody(const std::string& body) {
  constexpr std::string_view kWhat = "the record of a worker";
  MemberState member;
  std::string phase;
  MUSTER_ASSIGN(JsonFields fields, Fields(body, kWhat));
  fields.Read("state", phase)
      .Read("generation", member.generation)
      .Read("name", member.name)
      .Read("handled", member.handled)
      .Read("pause_ms", member.pause_ms)
      .Read("error", member.error)
      .Read("projections", member.projections)
      .Read("stopped", member.stopped)
      .Read("serial", member.serial)
      .Read("busy", member.busy);
  MUSTER_TRY(fields.Check(kWhat));
  const auto* const found = std::find(std::begin(kPhaseNames), std::end(kPhaseNames), phase);
  if (found == std::end(kPhaseNames)) {
    return Error{Code::kCorrupt, "a worker's state '" + phase + "' is not known"};
  }
  member.phase = static_cast<Phase>(found - std::begin(kPhaseNames));
  return member;
}

std::string DesiredState::Definition(int version) const {
  const auto found = definitions.find(std::to_string(version));
  return found == definitions.end() ? "" : found->second;
}

std::string DesiredState::ToBody() const {
  Json json{{kVersionField, kFormat.version},
            {"paused", paused},
            {"active", active},
            {"versions", versions},
            {"held", held},
            {"dropping", dropping},
            {"highest", highest},
            {"definitions", definitions},
            {"touched", touched}};
  if (forgotten) json["forgotten"] = true;
  return ToJsonText(json);
}

Result<DesiredState> DesiredState::FromBody(const std::string& body) {
  constexpr std::string_view kWhat = "the record of a projection";
  DesiredState desired;
  MUSTER_ASSIGN(JsonFields fields, Fields(body, kWhat));
  fields.Read("paused", desired.paused)
      .Read("active", desired.active)
      .Read("versions", desired.versions)
      .Read("held", desired.held)
      .Read("dropping", desired.dropping)
      .Read("highest", desired.highest)
      .Read("definitions", desired.definitions)
      .Read("touched", desired.touched)
      .Read("forgotten", desired.forgotten);
  MUSTER_TRY(fields.Check(kWhat));
  for (const int version : desired.versions) desired.highest = std::max(desired.highest, version);
  return desired;
}

std::string Suspect::ToBody() const {
  return ToJsonText(Json{{kVersionField, kFormat.version},
                         {"projection", projection},
                         {"version", version},
                         {"worker", worker},
                         {"positions", positions},
                         {"hangs", hangs}});
}

Result<Suspect> Suspect::FromBody(const std::string& body) {
  constexpr std::string_view kWhat = "the record of suspect events";
  Suspect suspect;
  int64_t position = 0;  // in older records, for a single event
  MUSTER_ASSIGN(JsonFields fields, Fields(body, kWhat));
  fields.Read("projection", suspect.projection)
      .Read("version", suspect.version)
      .Read("worker", suspect.worker)
      .Read("positions", suspect.positions)
      .Read("position", position)
      .Read("hangs", suspect.hangs);
  MUSTER_TRY(fields.Check(kWhat));
  if (position != 0) suspect.positions.push_back(position);
  return suspect;
}

std::map<int64_t, int> SetView::SuspectEvents(const std::string& projection, int version) const {
  std::map<int64_t, int> events;
  for (const auto& [record, suspect] : suspects) {
    if (suspect.projection != projection || suspect.version != version) continue;
    const auto owner = members.find(suspect.worker);
    const bool died =
        owner == members.end() || owner->second.state.phase == MemberState::Phase::kDead;
    if (suspect.hangs == 0 && !died) continue;
    // A worker may be killed from outside with any number of innocent events in flight: a death
    // counts against an event that was alone, and only makes the others suspect.
    const int times = suspect.hangs > 0 ? suspect.hangs : suspect.positions.size() == 1 ? 1 : 0;
    for (const int64_t position : suspect.positions) events[position] += times;
  }
  return events;
}

std::string ScaleBody(int workers) {
  return ToJsonText(Json{{kVersionField, kFormat.version}, {"workers", workers}});
}

std::set<std::string> SetView::Serialized() const {
  std::set<std::string> names;
  for (const auto& [id, member] : members) {
    if (member.state.Alive()) names.insert(member.state.serial.begin(), member.state.serial.end());
  }
  return names;
}

Status SetView::CheckNotForgotten(const std::vector<std::string>& names) const {
  for (const std::string& name : names) {
    const auto found = projections.find(name);
    if (found == projections.end() || !found->second.forgotten) continue;
    return Error{Code::kIncompatible,
                 "projection '" + name + "' was removed from the set with 'muster replica forget'",
                 "take it out of the file, or start it again from the first event with 'muster "
                 "replica reset', which clears its tables"};
  }
  return {};
}

Result<std::vector<std::string>> ListSets(store::Store& store) {
  std::vector<std::string> sets;
  for (std::string after;;) {
    MUSTER_ASSIGN(const std::vector<store::Record> next, store.Scan(kReplicaKind, "", after, 1));
    if (next.empty()) return sets;
    sets.push_back(next.front().key.substr(0, next.front().key.find('/')));
    after = sets.back() + "/\x7f";  // after all of its records: their names are plain
  }
}

namespace {

// Reads the records of a set. What `known` has of an equal record is taken from there: sets of
// hundreds of workers look at each other every few seconds.
class SetReader {
 public:
  SetReader(const std::string& set, SetView known)
      : scale_key_(ScaleKey(set)),
        member_(MemberKey(set, "")),
        projection_(ProjectionKey(set, "")),
        suspect_(set + "/suspect/"),
        known_(std::move(known)) {
    view_.set_record =
        store::Record{.kind = kReplicaKind, .queue = kReplicaQueue, .key = SetKey(set)};
  }

  // In the order of their keys. Moves from the record unless it fails. Records of other kinds are
  // ignored.
  Status Read(store::Record& record) {
    if (record.key.starts_with(member_)) return ReadMember(record);
    if (record.key == view_.set_record.key) return ReadGeneration(record);
    if (record.key == scale_key_) return ReadScale(record);
    if (record.key.starts_with(projection_)) {
      MUSTER_ASSIGN(view_.projections[record.key.substr(projection_.size())],
                    DesiredState::FromBody(record.body));
    } else if (record.key.starts_with(suspect_)) {
      MUSTER_ASSIGN(Suspect events, Suspect::FromBody(record.body));
      view_.suspects.emplace_back(std::move(record), std::move(events));
    }
    return {};
  }

  SetView Finish() { return std::move(view_); }

 private:
  Status ReadMember(store::Record& record) {
    const auto id = std::string_view(record.key).substr(member_.size());
    const auto found = known_.members.find(id);
    if (found != known_.members.end() && found->second.record.body == record.body) {
      found->second.record = std::move(record);
      view_.members.insert(view_.members.end(), known_.members.extract(found));
      return {};
    }
    MUSTER_ASSIGN(MemberState state, MemberState::FromBody(record.body));
    std::string name(id);
    view_.members.emplace_hint(view_.members.end(), std::move(name),
                               SetView::Member{std::move(record), std::move(state)});
    return {};
  }

  Status ReadGeneration(store::Record& record) {
    if (!record.body.empty() && record.body == known_.set_record.body) {
      view_.generation = std::move(known_.generation);
    } else {
      MUSTER_ASSIGN(view_.generation, Generation::FromBody(record.body));
    }
    view_.set_record = std::move(record);
    return {};
  }

  Status ReadScale(const store::Record& record) {
    int most = 0;
    constexpr std::string_view kWhat = "the scale of a replica set";
    MUSTER_ASSIGN(JsonFields fields, Fields(record.body, kWhat));
    fields.Read("workers", most);
    MUSTER_TRY(fields.Check(kWhat));
    if (most > 0) view_.scale = most;
    return {};
  }

  const std::string scale_key_, member_, projection_, suspect_;
  SetView known_;
  SetView view_;
};

}  // namespace

void ShowExpired(SetView& view, WallTime now) {
  for (auto& [id, member] : view.members) {
    if (!member.state.Alive() || member.record.due > now) continue;
    member.state.phase = MemberState::Phase::kDead;
    member.state.error = "its heartbeat stopped";
  }
}

int CountAlive(const SetView& view) {
  return static_cast<int>(
      std::count_if(view.members.begin(), view.members.end(),
                    [](const auto& member) { return member.second.state.Alive(); }));
}

Result<SetView> ReadSet(store::Store& store, const std::string& set, SetView known) {
  SetReader reader(set, std::move(known));
  const std::string prefix = set + "/";
  std::string after;
  for (;;) {
    MUSTER_ASSIGN(std::vector<store::Record> page,
                  store.Scan(kReplicaKind, prefix, after, store::kMaxBatch));
    const bool last = page.size() < static_cast<size_t>(store::kMaxBatch);
    if (!last) after = page.back().key;
    for (store::Record& record : page) {
      if (const Status read = reader.Read(record); !read) {
        return read.error().Within("record '" + record.key + "'");
      }
    }
    if (last) return reader.Finish();
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

}  // namespace muster::replica
