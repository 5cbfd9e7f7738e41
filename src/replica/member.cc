#include "replica/member.h"

#include <unistd.h>

#include <algorithm>
#include <string_view>

#include "core/log.h"
#include "core/planted_bug.h"
#include "replica/operations.h"
#include "replica/sorted_names.h"

namespace muster::replica {
namespace {

using std::chrono::nanoseconds;

constexpr milliseconds kLeavePatience{5'000};
constexpr milliseconds kRemembered{3'600'000};  // how long the dead can be seen

std::string HostName() {
  char name[65] = "";
  gethostname(name, sizeof name - 1);
  return name;
}

std::string Joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

bool AreAllIn(const std::vector<std::string>& some, const std::vector<std::string>& all) {
  const SortedNames names(all);
  return std::all_of(some.begin(), some.end(),
                     [&](const std::string& name) { return names.Contain(name); });
}

Error Lost(const std::string& id, const std::string& why) {
  return {Code::kLeaseLost, "worker " + id + " is no longer part of the set: " + why,
          "it stops and registers again"};
}

}  // namespace

Member::Member(store::Store& store, Env& env, const ReplicaOptions& options, int slots,
               std::vector<std::string> projections)
    : store_(store),
      env_(env),
      options_(options),
      slots_(slots),
      projections_(std::move(projections)) {}

Status Member::CheckSet(const SetView& view) const {
  MUSTER_TRY(view.CheckNotForgotten(projections_));
  if (view.set_record.version == 0) return {};
  if (view.generation.slots != slots_) {
    return Error{Code::kIncompatible,
                 "replica set '" + options_.set + "' has checkpoints for " +
                     std::to_string(view.generation.slots) + " slots, but the event log has " +
                     std::to_string(slots_),
                 "use the event log that the set was made for, or another name for the set"};
  }
  std::vector<std::string> missing;
  for (const std::string& name : view.generation.projections) {
    if (std::find(projections_.begin(), projections_.end(), name) == projections_.end()) {
      missing.push_back(name);
    }
  }
  if (missing.empty()) return {};
  return Error{Code::kIncompatible,
               "replica set '" + options_.set + "' runs projection " + Joined(missing) +
                   ", which this worker does not know",
               "a projection that is renamed loses its checkpoints: give it its old name, or "
               "remove it from the set with 'muster replica forget'"};
}

Status Member::Register() {
  MUSTER_ASSIGN(seen_, ReadSet(store_, options_.set, std::move(seen_)));
  MUSTER_TRY(CheckSet(seen_));
  const std::string name = options_.worker.empty() ? HostName() : options_.worker;
  // Never the same id again: death is final.
  id_ = name + "-" + env_.NewId().substr(0, 12);
  state_ = MemberState{.name = name, .projections = projections_};
  lease_.reset();
  const MonoTime asked = env_.MonoNow();
  auto lease = store::Lease::Create(store_,
                                    store::Record{.kind = kReplicaKind,
                                                  .queue = kReplicaQueue,
                                                  .key = MemberKey(options_.set, id_),
                                                  .owner = id_,
                                                  .body = state_.ToBody()},
                                    options_.heartbeat_timeout, env_);
  if (!lease && lease.error().code == Code::kLeaseLost) {
    return Error{Code::kUnavailable, "worker " + id_ + " could not register in time"};
  }
  if (!lease) return lease.error();
  lease_ = *std::move(lease);
  renewed_ = asked;
  differs_since_.reset();
  wanted_.clear();
  preparing_ = 0;
  SignalSet(store_, options_.set);
  return {};
}

Status Member::Commit(store::Due due) {
  if (!lease_) return Lost(id_, "it is not registered");
  store::Record next = lease_->record();
  next.body = state_.ToBody();
  const MonoTime asked = env_.MonoNow();
  const MonoTime deadline = lease_->deadline();
  const Status committed = lease_->Commit(std::move(next), due);
  if (committed) {
    renewed_ = asked;
    return {};
  }
  const Code code = committed.error().code;
  return code == Code::kLeaseLost || IsTransient(code) ? WhyLost(code, deadline)
                                                       : committed.error();
}

// A peer's verdict is by the store's clock, and final.
Error Member::WhyLost(Code code, MonoTime deadline) const {
  if (const std::optional<store::Record>& found = lease_->lost_to()) {
    const auto state = MemberState::FromBody(found->body);
    return Lost(id_, state && !state->error.empty() ? state->error : "it was declared dead");
  }
  const bool gone = code == Code::kLeaseLost && env_.MonoNow() < deadline;
  return Lost(id_, gone ? "its record is gone" : "it could not renew in time");
}

Status Member::Renew() { return Commit(store::Due::After(options_.heartbeat_timeout)); }

Status Member::Say(MemberState::Phase phase, int64_t generation) {
  state_.phase = phase;
  state_.generation = generation;
  MUSTER_TRY(Renew());
  SignalSet(store_, options_.set);
  return {};
}

Status Member::Leave() {
  if (!lease_) return {};
  state_.phase = MemberState::Phase::kStopped;
  // Not limited by the heartbeat: a worker past its deadline may still leave.
  lease_->SetDeadline(env_.MonoNow() + kLeavePatience);
  Status left = Commit(store::Due::After(kRemembered));
  lease_->Abandon();
  if (left) SignalSet(store_, options_.set);
  return left;
}

void Member::GenerationsSeenUpTo(int64_t generation) { beyond_ = std::max(beyond_, generation); }

nanoseconds Member::Rest() const {
  nanoseconds rest = options_.heartbeat_interval / 2;
  if (differs_since_) rest = std::min<nanoseconds>(rest, options_.quiet / 2);
  return rest;
}

Result<const SetView*> Member::Tick() {
  const MonoTime now = env_.MonoNow();
  if (now >= deadline()) return Lost(id_, "it could not renew in time");
  if (now - renewed_ >= options_.heartbeat_interval) MUSTER_TRY(Renew());
  MUSTER_ASSIGN(seen_, ReadSet(store_, options_.set, std::move(seen_)));
  const auto self = seen_.members.find(id_);
  if (self == seen_.members.end()) return Lost(id_, "its record is gone");
  if (!self->second.state.Alive()) {
    const std::string& why = self->second.state.error;
    return Lost(id_, why.empty() ? "it was declared dead" : why);
  }
  MUSTER_TRY(Coordinate(seen_));
  return &seen_;
}

Status Member::Coordinate(SetView& view) {
  MUSTER_ASSIGN(const WallTime now, store_.Now());
  MUSTER_ASSIGN(const bool died, ExpireMembers(view, now));
  Generation& generation = view.generation;
  std::vector<std::string> living;
  for (const auto& [id, member] : view.members) {
    if (member.state.Alive()) living.push_back(id);
  }
  // Members keep their places; the others follow in order of their ids, so that all workers agree
  // on who stands by.
  if (view.scale && living.size() > static_cast<size_t>(*view.scale)) {
    std::stable_sort(living.begin(), living.end(), [&](const auto& a, const auto& b) {
      return generation.assignment.PartitionOf(a) >= 0 && generation.assignment.PartitionOf(b) < 0;
    });
    living.resize(static_cast<size_t>(*view.scale));
  }
  const auto& members = generation.assignment.members;
  const bool gone = !AreAllIn(members, living);
  const bool joined = !AreAllIn(living, members);
  const bool behind = view.set_record.version == 0 || generation.number < beyond_;
  if (generation.phase == Generation::Phase::kPreparing && !gone && !behind) {
    // New workers wait for "go": otherwise a crowd could delay it forever.
    differs_since_.reset();
    return Go(view);
  }
  if (!gone && !joined && !behind) {
    differs_since_.reset();
    return {};
  }
  if (!Settled(living)) return {};
  const std::string reason = behind ? "the set is new to the store"
                             : gone ? (died ? "a worker died" : "a worker left")
                                    : "a worker joined";
  return Propose(view, std::move(living), reason, now);
}

// How long this generation has been preparing, as far as we have seen.
nanoseconds Member::PreparingFor(const SetView& view) {
  const bool preparing = view.generation.phase == Generation::Phase::kPreparing;
  if (!preparing || preparing_ != view.generation.number) {
    preparing_ = preparing ? view.generation.number : 0;
    preparing_since_ = env_.MonoNow();
  }
  return env_.MonoNow() - preparing_since_;
}

// Whether a member holds up the generation. A member that is finishing a batch is alive and will be
// ready. If it were replaced, the batch would be lost, and after it rejoined its next batch would
// be late again: no progress. Its own worker detects a batch that never ends, and gets the time to
// do so.
bool Member::IsLate(const SetView& view, const std::string& id, const MemberState& state,
                    nanoseconds waited) const {
  const bool busy = state.busy && !PLANTED_BUG(late_means_dead);
  const nanoseconds patience =
      busy ? options_.barrier_timeout + options_.handle_timeout : options_.barrier_timeout;
  return view.generation.phase == Generation::Phase::kPreparing && waited >= patience &&
         view.generation.assignment.PartitionOf(id) >= 0 && !state.ReadyFor(view.generation.number);
}

Result<bool> Member::ExpireMembers(SetView& view, WallTime now) {
  const nanoseconds waited = PreparingFor(view);
  const SortedNames with_parts(view.generation.assignment.members);
  bool died = false;
  std::vector<store::Change> changes;
  std::vector<std::string> ids;  // of those declared dead; empty: the record is deleted
  for (const auto& [id, member] : view.members) {
    const bool expired = member.record.due && *member.record.due <= now;
    const bool has_part = with_parts.Contain(id);
    if (!member.state.Alive() && member.state.phase != MemberState::Phase::kStopping) {
      died |= has_part && member.state.phase == MemberState::Phase::kDead;
      if (expired && !has_part) {
        changes.push_back(store::Change::Delete(member.record));
        ids.emplace_back();
      }
      continue;
    }
    const bool late = IsLate(view, id, member.state, waited);
    // This worker is alive: its next heartbeat shows it.
    if ((!expired && !late) || id == id_) continue;
    MemberState dead = member.state;
    dead.phase = MemberState::Phase::kDead;
    dead.error = expired ? "its heartbeat stopped"
                         : "it was not ready for generation " +
                               std::to_string(view.generation.number) + " in time";
    store::Record next = member.record;
    next.body = dead.ToBody();
    changes.push_back(store::Change::Put(std::move(next), store::Due::After(kRemembered)));
    ids.push_back(id);
  }
  for (const auto& [record, suspect] : view.suspects) {
    if (!record.due || *record.due > now) continue;
    changes.push_back(store::Change::Delete(record));
    ids.emplace_back();
  }
  if (changes.size() > static_cast<size_t>(store::kMaxBatch)) changes.resize(store::kMaxBatch);
  if (changes.empty()) return died;
  MUSTER_ASSIGN(const bool declared, DeclareDead(view, changes, ids));
  return died || declared;
}

// Each change applies only to the heartbeat that was judged: a newer one keeps its worker.
Result<bool> Member::DeclareDead(SetView& view, const std::vector<store::Change>& changes,
                                 const std::vector<std::string>& ids) {
  MUSTER_ASSIGN(const auto written, store_.Write(changes));
  bool died = false;
  for (size_t i = 0; i < written.size(); ++i) {
    if (!written[i].applied || ids[i].empty()) continue;
    SetView::Member& member = view.members[ids[i]];
    MUSTER_ASSIGN(member.state, MemberState::FromBody(changes[i].record.body));
    member.record = changes[i].record;
    member.record.version = written[i].version;
    Log(Level::kWarning, "worker declared dead",
        {{"set", options_.set}, {"worker", ids[i]}, {"why", member.state.error}, {"by", id_}});
    died = true;
  }
  return died;
}

// Whether the living have stayed the same for long enough, or have kept changing for too long.
bool Member::Settled(const std::vector<std::string>& wanted) {
  const MonoTime now = env_.MonoNow();
  if (!differs_since_) differs_since_ = now;
  if (wanted != wanted_) {
    wanted_ = wanted;
    changed_ = now;
  }
  return now - changed_ >= options_.quiet || now - *differs_since_ >= options_.quiet_most;
}

namespace {

// Slots whose owner died, perhaps because of one of their events, including those of a generation
// that never ran.
std::vector<int> OrphansOf(const SetView& view) {
  const Generation& generation = view.generation;
  std::vector<int> orphans;
  for (int slot = 0; slot < static_cast<int>(generation.assignment.owners.size()); ++slot) {
    const int owner = generation.assignment.owners[static_cast<size_t>(slot)];
    const auto member =
        view.members.find(generation.assignment.members[static_cast<size_t>(owner)]);
    const bool died =
        member == view.members.end() || member->second.state.phase == MemberState::Phase::kDead;
    const bool still = generation.phase == Generation::Phase::kPreparing &&
                       std::find(generation.orphans.begin(), generation.orphans.end(), slot) !=
                           generation.orphans.end();
    if (died || still) orphans.push_back(slot);
  }
  return orphans;
}

}  // namespace

Status Member::Propose(SetView& view, std::vector<std::string> members, const std::string& reason,
                       WallTime now) {
  Generation next;
  next.number = std::max(view.generation.number, beyond_) + 1;
  next.phase = Generation::Phase::kPreparing;
  next.strategy = options_.strategy;
  next.slots = slots_;
  next.assignment =
      Assign(view.generation.assignment, std::move(members), slots_, options_.strategy);
  next.projections = view.generation.projections;
  for (const std::string& name : projections_) {
    if (std::find(next.projections.begin(), next.projections.end(), name) ==
        next.projections.end()) {
      next.projections.push_back(name);
    }
  }
  next.orphans = OrphansOf(view);
  next.reason = reason;
  next.since_ms = now.time_since_epoch().count();
  MUSTER_ASSIGN(const bool ours, Swap(view, next));
  if (!ours) return {};
  Log(Level::kInfo, "new generation",
      {{"set", options_.set},
       {"generation", next.number},
       {"partitions", next.assignment.members.size()},
       {"reason", reason},
       {"by", id_}});
  differs_since_.reset();
  return {};
}

Status Member::Go(SetView& view) {
  for (const std::string& id : view.generation.assignment.members) {
    const auto member = view.members.find(id);
    if (member == view.members.end()) return {};
    if (!member->second.state.ReadyFor(view.generation.number)) return {};
  }
  Generation next = view.generation;
  next.phase = Generation::Phase::kRunning;
  MUSTER_ASSIGN(const bool ours, Swap(view, next));
  if (ours) {
    Log(Level::kInfo, "go", {{"set", options_.set}, {"generation", next.number}, {"by", id_}});
  }
  return {};
}

// Replaces the set's record, if it is still the one in `view`, and updates the view. The next look
// resolves an unknown outcome.
Result<bool> Member::Swap(SetView& view, const Generation& next) {
  store::Record record = view.set_record;
  if (PLANTED_BUG(generation_without_cas)) {
    auto stored = store_.Get(record.kind, record.key);
    if (stored && *stored) record.version = (*stored)->version;
  }
  record.body = next.ToBody();
  // The due time means nothing here; writing it wakes waiting workers.
  const store::Change change = store::Change::Put(record, store::Due::AtOnce());
  MUSTER_ASSIGN(const auto written, store_.Write({&change, 1}));
  if (!written.front().applied) return false;
  record.version = written.front().version;
  view.set_record = std::move(record);
  view.generation = next;
  return true;
}

}  // namespace muster::replica
