#include "replica/operations.h"

#include <algorithm>

#include "muster/store.h"
#include "replica/definitions.h"
#include "replica/log_identity.h"

namespace muster::replica {
namespace {

constexpr size_t kMaxAges = 100;  // parked streams whose age is looked up

std::vector<int> AllSlots(const events::EventLog& log) {
  std::vector<int> slots;
  for (int slot = 0; slot < log.slots(); ++slot) slots.push_back(slot);
  return slots;
}

// Updates one record, creating it if missing.
Status ChangeRecord(store::Store& store, const std::string& set, const std::string& key,
                    const std::function<Result<std::string>(const std::string& body)>& change) {
  const auto update =
      [&](std::optional<store::Record> stored) -> Result<std::optional<store::Change>> {
    store::Record record =
        stored ? *std::move(stored)
               : store::Record{.kind = kReplicaKind, .queue = kReplicaQueue, .key = key};
    MUSTER_ASSIGN(record.body, change(record.body));
    return store::Change::Put(std::move(record), store::Due::Never());
  };
  MUSTER_TRY(store::Update(store, kReplicaKind, key, update));
  SignalSet(store, set);
  return {};
}

// Parked events were passed over but not handled.
Status CountParked(events::EventLog& log, WallTime now, InstanceStatus& status) {
  size_t asked = 0;
  for (const ParkedStream& stream : status.parked) {
    status.parked_events += std::ssize(stream.versions);
    if (++asked > kMaxAges || stream.versions.empty()) continue;
    MUSTER_ASSIGN(const auto first, log.ReadStream(stream.stream, stream.versions.front() - 1, 1));
    if (first.empty()) continue;
    status.lag_time = std::max(status.lag_time, now - first.front().time);
    status.parked_at[stream.stream] = first.front().position;
  }
  status.handled -= status.parked_events;
  status.lag_events = status.unread + status.parked_events;
  return {};
}

Result<InstanceStatus> StatusOfInstance(events::EventLog& log, ReadModel& model,
                                        const Instance& instance, WallTime now) {
  InstanceStatus status;
  status.projection = instance.projection;
  status.version = instance.version;
  MUSTER_ASSIGN(status.slots, model.Slots(instance));
  status.same_log = CheckLogIsSame(log, instance.projection, status.slots);
  if (!status.same_log && status.same_log.error().code != Code::kIncompatible) {
    return status.same_log.error();
  }
  MUSTER_ASSIGN(status.log_warning, WarnIfLogEndsEarly(log, instance.projection, status.slots));
  std::map<int, int64_t> positions;
  for (const SlotState& slot : status.slots) {
    positions[slot.slot] = slot.position;
    status.handled += slot.handled - slot.skipped;
    status.skipped += slot.skipped;
  }
  std::vector<events::SlotPosition> from;
  for (const int slot : AllSlots(log)) from.push_back({slot, positions[slot]});
  MUSTER_ASSIGN(status.lags, log.Lag(from));
  for (const events::SlotLag& lag : status.lags) {
    status.unread += lag.events;
    status.lag_estimated |= lag.estimated;
    if (lag.oldest) status.lag_time = std::max(status.lag_time, now - *lag.oldest);
  }
  MUSTER_ASSIGN(status.parked, model.Parked(instance, AllSlots(log)));
  MUSTER_TRY(CountParked(log, now, status));
  return status;
}

// Followers with nothing to commit would not notice that their checkpoints moved. A projection that
// starts over is part of the set again.
Status Touch(store::Store& store, const std::string& set, const std::string& projection) {
  return ChangeDesired(store, set, projection, [](DesiredState& desired) -> Status {
    ++desired.touched;
    desired.forgotten = false;
    return {};
  });
}

}  // namespace

void SignalSet(store::Store& store, const std::string& set) {
  store::Record signal{.kind = kReplicaKind, .queue = kReplicaQueue, .key = SignalKey(set)};
  auto stored = store.Get(signal.kind, signal.key);
  if (stored && *stored) signal = **stored;
  const store::Change change = store::Change::Put(signal, store::Due::AtOnce());
  static_cast<void>(store.Write({&change, 1}));
}

Result<DesiredState> DesiredFor(store::Store& store, const std::string& set,
                                const std::string& projection) {
  MUSTER_ASSIGN(const auto stored, store.Get(kReplicaKind, ProjectionKey(set, projection)));
  if (!stored) return DesiredState{};
  return DesiredState::FromBody(stored->body);
}

Status ChangeDesired(store::Store& store, const std::string& set, const std::string& projection,
                     const std::function<Status(DesiredState&)>& change) {
  return ChangeRecord(store, set, ProjectionKey(set, projection),
                      [&](const std::string& body) -> Result<std::string> {
                        MUSTER_ASSIGN(DesiredState desired, DesiredState::FromBody(body));
                        MUSTER_TRY(change(desired));
                        return desired.ToBody();
                      });
}

Status PauseProjection(store::Store& store, const std::string& set, const std::string& projection,
                       bool paused) {
  return ChangeDesired(store, set, projection, [&](DesiredState& desired) -> Status {
    desired.paused = paused;
    return {};
  });
}

Result<std::vector<std::string>> NotStoppedYet(store::Store& store, const std::string& set,
                                               const std::string& projection,
                                               const std::vector<int>& versions) {
  MUSTER_ASSIGN(const SetView view, ReadSet(store, set));
  MUSTER_ASSIGN(const WallTime now, store.Now());
  std::vector<std::string> names;
  for (const auto& [id, member] : view.members) {
    // Past its deadline a worker has stopped, or is dead.
    if (member.state.phase != MemberState::Phase::kRunning || !(member.record.due > now)) continue;
    const auto& stopped = member.state.stopped;
    const bool all = std::all_of(versions.begin(), versions.end(), [&](int version) {
      const std::string name = StoppedName(projection, version);
      return std::find(stopped.begin(), stopped.end(), name) != stopped.end();
    });
    if (!all) names.push_back(member.state.name);
  }
  return names;
}

Result<std::vector<std::string>> NotPausedYet(store::Store& store, const std::string& set,
                                              const std::string& projection) {
  MUSTER_ASSIGN(const DesiredState desired, DesiredFor(store, set, projection));
  return NotStoppedYet(store, set, projection, desired.versions);
}

Status ScaleSet(store::Store& store, const std::string& set, std::optional<int> workers) {
  return ChangeRecord(store, set, ScaleKey(set), [&](const std::string&) -> Result<std::string> {
    return ScaleBody(workers.value_or(0));
  });
}

Status ResetProjection(store::Store& store, events::EventLog& log, ReadModel& model,
                       const std::string& set, Projection& projection) {
  MUSTER_ASSIGN(const DesiredState desired, DesiredFor(store, set, projection.name()));
  const Instance instance{set, projection.name(), desired.active};
  const std::string built = desired.Definition(desired.active), own = DefinitionHash(projection);
  if (!built.empty() && !own.empty() && built != own) {
    return Error{Code::kConflict,
                 "version " + std::to_string(desired.active) + " of projection '" +
                     projection.name() + "' was built by definition " + built + ", not by " + own,
                 "'muster replica rebuild' builds that one beside it"};
  }
  std::vector<events::SlotPosition> start;
  for (const int slot : AllSlots(log)) start.push_back({slot, 0});
  MUSTER_ASSIGN(const auto transaction, model.Begin());
  // Checkpoints first: an owner about to commit a batch waits, and then fails.
  MUSTER_TRY(model.Put(*transaction, instance, start, true));
  MUSTER_TRY(projection.SetUp(*transaction, desired.active));
  MUSTER_TRY(projection.Clear(*transaction, desired.active));
  MUSTER_TRY(model.Commit(*transaction));
  return Touch(store, set, projection.name());
}

Result<bool> AdoptDefinition(store::Store& store, const std::string& set,
                             const Projection& projection) {
  const std::string own = DefinitionHash(projection);
  if (own.empty()) {
    return Error{Code::kInvalid, "projection '" + projection.name() + "' states no definition"};
  }
  MUSTER_TRY(KeepDefinition(store, set, projection));
  bool changed = false;
  MUSTER_TRY(ChangeDesired(store, set, projection.name(), [&](DesiredState& desired) -> Status {
    std::string& hash = desired.definitions[std::to_string(desired.active)];
    changed = hash != own;
    hash = own;
    return {};
  }));
  return changed;
}

Status SkipEvent(store::Store& store, events::EventLog& log, ReadModel& model,
                 const Instance& instance, int64_t position) {
  if (position < 1) return Error{Code::kInvalid, "positions start at 1"};
  MUSTER_ASSIGN(const events::EventPage page, log.ReadAll(position - 1, 1));
  if (page.events.empty() || page.events.front().position != position) {
    return Error{Code::kNotFound, "no event at position " + std::to_string(position)};
  }
  const events::Event& event = page.events.front();
  Status parked = model.SkipParked(instance, {event.slot, event.stream, event.version});
  if (parked) SignalSet(store, instance.set);
  if (parked || parked.error().code != Code::kNotFound) return parked;
  MUSTER_ASSIGN(const auto slots, model.Slots(instance));
  const auto slot = std::find_if(slots.begin(), slots.end(),
                                 [&](const SlotState& state) { return state.slot == event.slot; });
  if (slot == slots.end()) {
    return Error{Code::kNotFound, "projection '" + instance.projection + "' has not started yet",
                 "run the set once first"};
  }
  const events::SlotPosition from{event.slot, slot->position};
  MUSTER_ASSIGN(const events::EventPage next, log.Read({&from, 1}, 1));
  if (next.events.empty() || next.events.front().position != position) {
    return Error{Code::kConflict,
                 "event " + std::to_string(position) +
                     " is neither parked nor the next of its slot: " +
                     (slot->position >= position ? "it has been handled"
                                                 : "earlier ones have to be handled first"),
                 "'muster replica status' shows where the slots are"};
  }
  MUSTER_ASSIGN(const auto transaction, model.Begin());
  return model.Commit(
      *transaction, instance,
      {.moves = {{event.slot, slot->generation, slot->position, position, 1, DigestOf(event),
                  slot->effects_until, /*skipped=*/1, events::MarkOf(event)}}});
}

Result<int64_t> SkipStream(store::Store& store, events::EventLog& log, ReadModel& model,
                           const Instance& instance, const std::string& stream) {
  MUSTER_ASSIGN(const auto parked, model.Parked(instance, AllSlots(log)));
  int64_t skipped = 0;
  for (const ParkedStream& one : parked) {
    if (one.stream != stream) continue;
    // From the end: if this fails, what stays parked is still a prefix.
    for (auto version = one.versions.rbegin(); version != one.versions.rend(); ++version) {
      const Status done = model.SkipParked(instance, {one.slot, one.stream, *version});
      if (!done && done.error().code != Code::kNotFound) return done.error();
      skipped += done ? 1 : 0;
    }
  }
  SignalSet(store, instance.set);
  return skipped;
}

namespace {

Status CheckUnused(const SetView& view, WallTime now, const std::string& projection) {
  for (const auto& [id, member] : view.members) {
    const auto& known = member.state.projections;
    if (!member.state.Alive() || !(member.record.due > now)) continue;
    if (std::find(known.begin(), known.end(), projection) == known.end()) continue;
    return Error{Code::kConflict, "worker " + id + " runs projection '" + projection + "'",
                 "stop the workers whose file has it: they would start it from the first event"};
  }
  return {};
}

Status ReadUnused(store::Store& store, const std::string& set, const std::string& projection) {
  MUSTER_ASSIGN(const SetView view, ReadSet(store, set));
  MUSTER_ASSIGN(const WallTime now, store.Now());
  return CheckUnused(view, now, projection);
}

Status MarkForgotten(store::Store& store, const std::string& set, const std::string& projection,
                     bool forgotten) {
  return ChangeDesired(store, set, projection, [&](DesiredState& desired) -> Status {
    desired.forgotten = forgotten;
    return {};
  });
}

}  // namespace

Status ForgetProjection(store::Store& store, ReadModel& model, const std::string& set,
                        const std::string& projection) {
  MUSTER_ASSIGN(const SetView view, ReadSet(store, set));
  MUSTER_ASSIGN(const WallTime now, store.Now());
  const auto& ran = view.generation.projections;
  const auto known = view.projections.find(projection);
  const bool gone = known == view.projections.end() || known->second.forgotten;
  if (gone && std::find(ran.begin(), ran.end(), projection) == ran.end()) {
    return Error{Code::kNotFound, "set '" + set + "' has no projection '" + projection + "'"};
  }
  MUSTER_TRY(CheckUnused(view, now, projection));
  // Before anything is removed: from now on, new workers are refused; one that has registered since
  // the first check is found by the second.
  MUSTER_TRY(MarkForgotten(store, set, projection, true));
  Status unused = ReadUnused(store, set, projection);
  if (!unused) {
    MUSTER_TRY(MarkForgotten(store, set, projection, false));
    return unused;
  }
  MUSTER_ASSIGN(const DesiredState desired, DesiredFor(store, set, projection));
  for (const int version : desired.versions) {
    MUSTER_ASSIGN(const auto transaction, model.Begin());
    MUSTER_TRY(model.Forget(*transaction, {set, projection, version}, false));
    MUSTER_TRY(model.Commit(*transaction));
  }
  // The remaining record is enough to find its tables again.
  MUSTER_TRY(ChangeDesired(store, set, projection, [](DesiredState& left) -> Status {
    left = DesiredState{.active = left.active,
                        .versions = {left.active},
                        .highest = left.highest,
                        .forgotten = true};
    return {};
  }));
  if (view.set_record.version == 0) return {};
  return ChangeRecord(store, set, SetKey(set), [&](const std::string& body) -> Result<std::string> {
    MUSTER_ASSIGN(Generation generation, Generation::FromBody(body));
    std::erase(generation.projections, projection);
    return generation.ToBody();
  });
}

Result<SetStatus> StatusOf(store::Store& store, events::EventLog& log, ReadModel& model,
                           const std::string& set, const std::vector<std::string>& projections) {
  SetStatus status;
  MUSTER_ASSIGN(status.view, ReadSet(store, set));
  MUSTER_ASSIGN(status.now, store.Now());
  ShowExpired(status.view, status.now);
  const std::set<std::string> serialized = status.view.Serialized();
  for (const std::string& projection : projections) {
    const auto found = status.view.projections.find(projection);
    const DesiredState desired =
        found == status.view.projections.end() ? DesiredState{} : found->second;
    for (const int version : desired.versions) {
      MUSTER_ASSIGN(InstanceStatus instance,
                    StatusOfInstance(log, model, {set, projection, version}, status.now));
      instance.active = version == desired.active;
      instance.paused = desired.paused;
      instance.definition = desired.Definition(version);
      instance.serialized = serialized.contains(projection);
      instance.held =
          std::find(desired.held.begin(), desired.held.end(), version) != desired.held.end();
      status.instances.push_back(std::move(instance));
    }
  }
  return status;
}

Status CheckSameLog(const SetStatus& status) {
  for (const InstanceStatus& instance : status.instances) MUSTER_TRY(instance.same_log);
  return {};
}

Result<int64_t> ReplayParked(store::Store& store, ReadModel& model, const Instance& instance,
                             const std::string& stream) {
  MUSTER_ASSIGN(const SetView view, ReadSet(store, instance.set));
  for (const auto& [record, suspect] : view.suspects) {
    if (suspect.projection != instance.projection || suspect.version != instance.version) continue;
    if (!view.Counts(suspect)) continue;
    // What has been marked since was not looked at, and may hang or kill a processor again.
    const auto remove =
        [version = record.version](
            std::optional<store::Record> stored) -> Result<std::optional<store::Change>> {
      if (!stored || stored->version != version) return std::nullopt;
      return store::Change::Delete(*std::move(stored));
    };
    MUSTER_TRY(store::Update(store, kReplicaKind, record.key, remove));
  }
  MUSTER_ASSIGN(const int64_t asked, model.RequestReplay(instance, stream));
  SignalSet(store, instance.set);
  return asked;
}

}  // namespace muster::replica
