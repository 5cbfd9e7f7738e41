#include "replica/set_records.h"

#include <algorithm>

#include "core/record_fields.h"
#include "store/store.h"

namespace muster::replica {
namespace {

using Phase = MemberState::Phase;

constexpr EnumNames<Generation::Phase, 2> kGenerationPhases{{{
    {Generation::Phase::kPreparing, "preparing"},
    {Generation::Phase::kRunning, "running"},
}}};
constexpr EnumNames<Phase, 6> kPhases{{{
    {Phase::kPending, "pending"},
    {Phase::kReady, "ready"},
    {Phase::kRunning, "running"},
    {Phase::kStopping, "stopping"},
    {Phase::kStopped, "stopped"},
    {Phase::kDead, "dead"},
}}};

// An enum that keeps its default under any other name.
template <const auto& kNames>
struct ByNameOrDefault : ByName<kNames> {
  template <class V>
  static void Read(JsonFields& fields, std::string_view name, V& value) {
    std::string text;
    fields.Read(name, text);
    if (const auto known = kNames.Find(text)) value = *known;
  }
};

// Of all records of a set. Those without a version are of format 0, which has the same fields.
constexpr RecordFormat kFormat{kReplicaKind, 1};

constexpr size_t kMaxErrorBytes = 1000;

// Text that is cut off when it is written.
template <size_t kMost>
struct AtMost : AsIs {
  static Json Write(const std::string& text) { return text.substr(0, kMost); }
};

void PutPartitions(const Generation& from, Json& json, std::string_view name) {
  json[name] = from.assignment.members.size();
}

constexpr RecordTable<Generation, 11> kGenerationTable{
    kFormat,
    {{
        Always<Generation, &Generation::number>("generation"),
        Always<Generation, &Generation::phase, ByNameOrDefault<kGenerationPhases>>("phase"),
        Always<Generation, &Generation::strategy, ByNameOrDefault<kStrategies>>("strategy"),
        {"partitions", PutPartitions, [](JsonFields&, Generation&, std::string_view) {}},
        Always<Generation, [](auto& one) -> auto& { return one.assignment.members; }>("members"),
        Always<Generation, &Generation::slots>("slots"),
        Always<Generation, [](auto& one) -> auto& { return one.assignment.owners; }>("owners"),
        Always<Generation, &Generation::projections>("projections"),
        Always<Generation, &Generation::reason>("reason"),
        Always<Generation, &Generation::since_ms>("since_ms"),
        Field<Generation, &Generation::orphans>("orphans"),
    }}};

constexpr RecordTable<MemberState, 10> kMemberTable{
    kFormat,
    {{
        Named<MemberState, &MemberState::phase, kPhases>("state"),
        Always<MemberState, &MemberState::generation>("generation"),
        Always<MemberState, &MemberState::name>("name"),
        Always<MemberState, &MemberState::handled>("handled"),
        Always<MemberState, &MemberState::pause_ms>("pause_ms"),
        Field<MemberState, &MemberState::error, AtMost<kMaxErrorBytes>>("error"),
        Field<MemberState, &MemberState::projections>("projections"),
        Field<MemberState, &MemberState::stopped>("stopped"),
        Field<MemberState, &MemberState::serial>("serial"),
        Field<MemberState, &MemberState::busy>("busy"),
    }}};

constexpr RecordTable<DesiredState, 9> kDesiredTable{
    kFormat,
    {{
        Always<DesiredState, &DesiredState::paused>("paused"),
        Always<DesiredState, &DesiredState::active>("active"),
        Always<DesiredState, &DesiredState::versions>("versions"),
        Always<DesiredState, &DesiredState::held>("held"),
        Always<DesiredState, &DesiredState::dropping>("dropping"),
        Always<DesiredState, &DesiredState::highest>("highest"),
        Always<DesiredState, &DesiredState::definitions>("definitions"),
        Always<DesiredState, &DesiredState::touched>("touched"),
        Field<DesiredState, &DesiredState::forgotten>("forgotten"),
    }}};

void TakePosition(JsonFields& fields, Suspect& to, std::string_view name) {
  int64_t position = 0;
  fields.Read(name, position);
  if (position != 0) to.positions.push_back(position);
}

constexpr RecordTable<Suspect, 6> kSuspectTable{
    kFormat,
    {{
        Always<Suspect, &Suspect::projection>("projection"),
        Always<Suspect, &Suspect::version>("version"),
        Always<Suspect, &Suspect::worker>("worker"),
        Always<Suspect, &Suspect::positions>("positions"),
        // In older records, of a single event.
        {"position", [](const Suspect&, Json&, std::string_view) {}, TakePosition},
        Always<Suspect, &Suspect::hangs>("hangs"),
    }}};

struct Scale {
  int workers = 0;
};
constexpr RecordTable<Scale, 1> kScaleTable{kFormat, {{Always<Scale, &Scale::workers>("workers")}}};

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

std::string_view PhaseName(Generation::Phase phase) { return kGenerationPhases.NameOf(phase); }

std::string Generation::ToBody() const { return ToJsonText(kGenerationTable.ToJson(*this)); }

Result<Generation> Generation::FromBody(const std::string& body) {
  MUSTER_ASSIGN(Generation generation, kGenerationTable.Parse(body, "the record of a replica set"));
  const auto count = static_cast<int>(generation.assignment.members.size());
  const bool owned =
      std::all_of(generation.assignment.owners.begin(), generation.assignment.owners.end(),
                  [&](int owner) { return owner >= 0 && owner < count; });
  if (generation.number < 1 || !owned) {
    return Error{Code::kCorrupt,
                 "the record of a replica set is inconsistent: " + body.substr(0, 200)};
  }
  return generation;
}

std::string_view PhaseName(MemberState::Phase phase) { return kPhases.NameOf(phase); }

std::string StoppedName(const std::string& projection, int version) {
  return projection + "@" + std::to_string(version);
}

bool MemberState::ReadyFor(int64_t wanted) const {
  if (generation != wanted) return false;
  return phase == Phase::kReady || phase == Phase::kRunning;
}

std::string MemberState::ToBody() const { return ToJsonText(kMemberTable.ToJson(*this)); }

Result<MemberState> MemberState::FromBody(const std::string& body) {
  return kMemberTable.Parse(body, "the record of a worker");
}

std::string DesiredState::Definition(int version) const {
  const auto found = definitions.find(std::to_string(version));
  return found == definitions.end() ? "" : found->second;
}

std::string DesiredState::ToBody() const { return ToJsonText(kDesiredTable.ToJson(*this)); }

Result<DesiredState> DesiredState::FromBody(const std::string& body) {
  MUSTER_ASSIGN(DesiredState desired, kDesiredTable.Parse(body, "the record of a projection"));
  for (const int version : desired.versions) desired.highest = std::max(desired.highest, version);
  return desired;
}

std::string Suspect::ToBody() const { return ToJsonText(kSuspectTable.ToJson(*this)); }

Result<Suspect> Suspect::FromBody(const std::string& body) {
  return kSuspectTable.Parse(body, "the record of suspect events");
}

bool SetView::Counts(const Suspect& suspect) const {
  if (suspect.hangs > 0) return true;
  const auto owner = members.find(suspect.worker);
  return owner == members.end() || owner->second.state.phase == MemberState::Phase::kDead;
}

std::map<int64_t, int> SetView::SuspectEvents(const std::string& projection, int version) const {
  std::map<int64_t, int> events;
  for (const auto& [record, suspect] : suspects) {
    if (suspect.projection != projection || suspect.version != version) continue;
    if (!Counts(suspect)) continue;
    // A worker may be killed from outside with any number of innocent events in flight: a death
    // counts against an event that was alone, and only makes the others suspect.
    const int times = suspect.hangs > 0 ? suspect.hangs : suspect.positions.size() == 1 ? 1 : 0;
    for (const int64_t position : suspect.positions) events[position] += times;
  }
  return events;
}

std::string ScaleBody(int workers) { return ToJsonText(kScaleTable.ToJson({.workers = workers})); }

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
    MUSTER_ASSIGN(const Scale scale, kScaleTable.Parse(record.body, "the scale of a replica set"));
    if (scale.workers > 0) view_.scale = scale.workers;
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
  for (store::RecordScan records(store, kReplicaKind, set + "/");;) {
    MUSTER_ASSIGN(std::optional<store::Record> record, records.Next());
    if (!record) return reader.Finish();
    if (const Status read = reader.Read(*record); !read) {
      return read.error().Within("record '" + record->key + "'");
    }
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
