#include "replica/rebuild.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "replica/definitions.h"
#include "replica/log_identity.h"
#include "replica/operations.h"

namespace muster::replica {
namespace {

constexpr milliseconds kLook{200};
constexpr milliseconds kSwapPatience{60'000};

Error AskedToStop(const std::string& hint) { return {Code::kCancelled, "stop requested", hint}; }

std::map<int, int64_t> PositionsOf(const std::vector<SlotState>& slots) {
  std::map<int, int64_t> positions;
  for (const SlotState& slot : slots) positions[slot.slot] = slot.position;
  return positions;
}

}  // namespace

std::string Rebuild::Named(int version) const {
  return "version " + std::to_string(version) + " of '" + name_ + "'";
}

// The projection's desired state. The read model decides about readers and side effects: a swap
// that was interrupted after it is completed here.
Result<DesiredState> Rebuild::Settled() const {
  MUSTER_ASSIGN(DesiredState desired, DesiredFor(store_, set_, name_));
  for (const int version : desired.versions) {
    if (version == desired.active) continue;
    MUSTER_ASSIGN(const auto slots, model_.Slots({set_, name_, version}));
    if (slots.empty() || slots.front().effects_until != kEffectsAlways) continue;
    MUSTER_TRY(ChangeDesired(store_, set_, name_, [&](DesiredState& now) -> Status {
      now.active = version;
      now.held.clear();
      desired = now;
      return {};
    }));
  }
  return desired;
}

Status Rebuild::CheckNotPaused(const DesiredState& desired) const {
  if (!desired.paused) return {};
  return Error{Code::kConflict, "projection '" + name_ + "' is paused",
               "resume it first: no version of it moves"};
}

Status Rebuild::CheckBuiltBy(const std::string& hash, int version) const {
  const std::string own = DefinitionHash(*given_);
  if (hash == own || hash.empty() || own.empty()) return {};
  return Error{Code::kConflict, Named(version) + " has definition " + hash + ", not " + own,
               "drop it with --finish first, or rebuild by its own definition"};
}

// As it was built, which may differ from what was passed here.
Result<std::shared_ptr<Projection>> Rebuild::Built(int version) const {
  MUSTER_ASSIGN(const DesiredState desired, DesiredFor(store_, set_, name_));
  return ProjectionBy(store_, set_, given_, desired.Definition(version));
}

Result<int> Rebuild::Begin() {
  MUSTER_TRY(Settled());
  MUSTER_TRY(KeepDefinition(store_, set_, *given_));
  int version = 0;
  MUSTER_TRY(ChangeDesired(store_, set_, name_, [&](DesiredState& desired) -> Status {
    MUSTER_TRY(CheckNotPaused(desired));
    for (const int other : desired.versions) {
      if (other < desired.active) {
        return Error{Code::kConflict,
                     Named(other) + " is still kept beside the active version " +
                         std::to_string(desired.active),
                     "drop it with --finish, or go back to it with --rollback"};
      }
      if (other > desired.active) version = other;
    }
    desired.held.clear();  // left by an interrupted swap
    if (version != 0) return CheckBuiltBy(desired.Definition(version), version);
    version = ++desired.highest;
    desired.versions.push_back(version);
    const std::string hash = DefinitionHash(*given_);
    if (!hash.empty()) desired.definitions[std::to_string(version)] = hash;
    return {};
  }));
  return version;
}

// The inactive version.
Result<int> Rebuild::Other(const DesiredState& desired) const {
  for (const int version : desired.versions) {
    if (version != desired.active) return version;
  }
  return Error{Code::kNotFound, "projection '" + name_ + "' has no version besides the active one",
               "begin with 'muster replica rebuild'"};
}

Result<int64_t> Rebuild::Left() {
  MUSTER_ASSIGN(const DesiredState desired, Settled());
  MUSTER_ASSIGN(const int version, Other(desired));
  MUSTER_ASSIGN(const auto slots, model_.Slots({set_, name_, version}));
  std::map<int, int64_t> positions = PositionsOf(slots);
  std::vector<events::SlotPosition> from;
  for (int slot = 0; slot < log_.slots(); ++slot) from.push_back({slot, positions[slot]});
  MUSTER_ASSIGN(const auto lags, log_.Lag(from));
  return std::accumulate(lags.begin(), lags.end(), int64_t{0},
                         [](int64_t sum, const events::SlotLag& lag) { return sum + lag.events; });
}

Status Rebuild::CatchUp(int64_t lag, RebuildObserver& observer, std::stop_token stop) {
  MUSTER_ASSIGN(const DesiredState begun, Settled());
  MUSTER_ASSIGN(const int version, Other(begun));
  for (;;) {
    const MonoTime began = env_.MonoNow();
    MUSTER_ASSIGN(const DesiredState desired, DesiredFor(store_, set_, name_));
    MUSTER_TRY(CheckNotPaused(desired));
    MUSTER_ASSIGN(const auto slots, model_.Slots({set_, name_, version}));
    MUSTER_ASSIGN(const int64_t left, Left());
    observer.Advanced(left);
    // Slots appear when a worker acquires them: before that, nothing happens.
    if (left <= lag && slots.size() == static_cast<size_t>(log_.slots())) return {};
    const auto took = env_.MonoNow() - began;
    if (!env_.Sleep(std::max<MonoTime::duration>(kLook, took * 10), stop)) {
      return AskedToStop("workers continue to build " + Named(version) + "; call again");
    }
  }
}

Status Rebuild::Hold(int version, bool held) {
  return ChangeDesired(store_, set_, name_, [&](DesiredState& desired) -> Status {
    std::erase(desired.held, version);
    if (held) desired.held.push_back(version);
    return {};
  });
}

// With more parked streams than the active version, readers would see less after a swap.
Status Rebuild::CheckParked(int from, int to) const {
  std::vector<int> slots(static_cast<size_t>(log_.slots()));
  std::iota(slots.begin(), slots.end(), 0);
  MUSTER_ASSIGN(const auto before, model_.Parked({set_, name_, from}, slots));
  MUSTER_ASSIGN(const auto after, model_.Parked({set_, name_, to}, slots));
  std::set<std::string> known;
  for (const ParkedStream& stream : before) known.insert(stream.stream);
  for (const ParkedStream& stream : after) {
    if (known.contains(stream.stream)) continue;
    return Error{Code::kConflict,
                 Named(to) + " has parked stream '" + stream.stream + "', version " +
                     std::to_string(from) + " has not: " + stream.error,
                 "fix the cause, then replay or skip it with --version " + std::to_string(to) +
                     "; or drop the version with --finish"};
  }
  return {};
}

Status Rebuild::Swap(bool back, std::stop_token stop) {
  MUSTER_ASSIGN(const DesiredState desired, Settled());
  MUSTER_ASSIGN(const int other, Other(desired));
  if (back != (other < desired.active)) {
    return Error{Code::kConflict, Named(desired.active) + " is active already"};
  }
  MUSTER_TRY(CheckNotPaused(desired));
  MUSTER_TRY(Hold(desired.active, true));
  Status swapped = SwapHeld(desired.active, other, std::move(stop));
  // Whatever the outcome, no version may stay held.
  Status released = Hold(desired.active, false);
  if (!swapped) return swapped;
  return released;
}

// Events in progress when side effects are handed over are handled again. Stopped workers handle
// none.
Result<bool> Rebuild::Stopped(int version) const {
  MUSTER_ASSIGN(const auto going, NotStoppedYet(store_, set_, name_, {version}));
  return going.empty();
}

Result<bool> Rebuild::IsBehind(int from, int to) const {
  MUSTER_ASSIGN(const auto old_slots, model_.Slots({set_, name_, from}));
  MUSTER_ASSIGN(const auto new_slots, model_.Slots({set_, name_, to}));
  // A swap that cannot succeed yet must not be sent: it could arrive after the version was dropped.
  if (new_slots.size() < static_cast<size_t>(log_.slots())) return true;
  std::map<int, int64_t> positions = PositionsOf(new_slots);
  return std::any_of(old_slots.begin(), old_slots.end(),
                     [&](const SlotState& slot) { return slot.position > positions[slot.slot]; });
}

Status Rebuild::TrySwap(int from, int to) {
  MUSTER_ASSIGN(const auto before, Built(from));
  MUSTER_ASSIGN(const auto after, Built(to));
  MUSTER_ASSIGN(const auto transaction, model_.Begin());
  MUSTER_TRY(before->Deactivate(*transaction, from));
  MUSTER_TRY(after->Activate(*transaction, to));
  return model_.Swap(*transaction, {set_, name_, from}, to, log_.slots());
}

Status Rebuild::SwapHeld(int from, int to, std::stop_token stop) {
  const MonoTime give_up = env_.MonoNow() + kSwapPatience;
  for (;;) {
    MUSTER_ASSIGN(const bool stopped, Stopped(from));
    MUSTER_ASSIGN(const bool behind, IsBehind(from, to));
    if (stopped && !behind) {
      if (from < to) MUSTER_TRY(CheckParked(from, to));
      Status swapped = TrySwap(from, to);
      if (swapped) break;
      if (swapped.error().code != Code::kConflict) return swapped;
    }
    if (env_.MonoNow() >= give_up) {
      return Error{Code::kUnavailable,
                   behind ? Named(to) + " does not catch up with version " + std::to_string(from)
                          : Named(from) + " does not stop",
                   "is the set running? 'muster replica status' shows how far it is"};
    }
    if (!env_.Sleep(kLook, stop)) {
      return AskedToStop(Named(from) + " is still the active one; call again");
    }
  }
  // From here on readers see the new version, and it performs the side effects.
  return ChangeDesired(store_, set_, name_, [&](DesiredState& desired) -> Status {
    desired.active = to;
    desired.held.clear();
    return {};
  });
}

Status Rebuild::CheckEffectsDone(int version) const {
  const Instance instance{set_, name_, version};
  MUSTER_ASSIGN(const auto states, model_.Slots(instance));
  // If the log was replaced, the remaining events can never be handled.
  const Status same = CheckLogIsSame(log_, name_, states);
  if (!same) return same.error().code == Code::kIncompatible ? Status() : same;
  // Nor can events beyond the end of a truncated log.
  MUSTER_ASSIGN(const int64_t last, log_.Last());
  std::vector<int> slots;
  for (const SlotState& state : states) {
    slots.push_back(state.slot);
    const bool ends = state.effects_until != kEffectsAlways;  // else it was swapped in just now
    if (state.position >= (ends ? std::min(state.effects_until, last) : kEffectsAlways)) continue;
    return Error{Code::kConflict,
                 Named(version) + " still has side effects to do, up to position " +
                     std::to_string(state.effects_until) + " of slot " + std::to_string(state.slot),
                 "let the set run, and call again"};
  }
  MUSTER_ASSIGN(const auto parked, model_.Parked(instance, slots));
  for (const ParkedStream& stream : parked) {
    if (stream.quiet.size() == stream.versions.size()) continue;
    return Error{Code::kConflict,
                 Named(version) + " has parked stream '" + stream.stream +
                     "', whose side effects have not been done",
                 "replay or skip it first, with --version " + std::to_string(version)};
  }
  return {};
}

// A swap in progress when its caller gave up.
Status Rebuild::Restore(int version) {
  return ChangeDesired(store_, set_, name_, [&](DesiredState& desired) -> Status {
    desired.dropping.clear();
    desired.versions.push_back(version);
    desired.active = version;
    return {};
  });
}

Result<int> Rebuild::Finish() {
  MUSTER_ASSIGN(const DesiredState desired, Settled());
  // Left by an interrupted swap.
  for (const int version : desired.held) MUSTER_TRY(Hold(version, false));
  int other = desired.dropping.empty() ? 0 : desired.dropping.front();
  if (other == 0) {
    MUSTER_ASSIGN(other, Other(desired));
    MUSTER_TRY(CheckEffectsDone(other));
    MUSTER_TRY(ChangeDesired(store_, set_, name_, [&](DesiredState& now) -> Status {
      if (now.active == other) return Error{Code::kConflict, Named(other) + " is active again"};
      std::erase(now.versions, other);
      now.held.clear();
      now.dropping = {other};
      return {};
    }));
  }
  // A worker that has not noticed yet fails to commit, and then looks again.
  MUSTER_ASSIGN(const auto built, Built(other));
  MUSTER_ASSIGN(const auto transaction, model_.Begin());
  if (const Status forgotten = model_.Forget(*transaction, {set_, name_, other}, true);
      !forgotten) {
    if (forgotten.error().code == Code::kConflict) MUSTER_TRY(Restore(other));
    return forgotten.error();
  }
  MUSTER_TRY(built->Drop(*transaction, other));
  MUSTER_TRY(model_.Commit(*transaction));
  MUSTER_TRY(ChangeDesired(store_, set_, name_, [&](DesiredState& now) -> Status {
    std::erase(now.dropping, other);
    now.definitions.erase(std::to_string(other));
    return {};
  }));
  return other;
}

}  // namespace muster::replica
