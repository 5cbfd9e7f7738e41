#include "replica/follower.h"

#include <algorithm>

#include "core/fnv.h"
#include "core/mutex.h"
#include "core/planted_bug.h"
#include "replica/log_identity.h"

namespace muster::replica {
namespace {

constexpr milliseconds kLookEvery{1'000};

}  // namespace

bool Follower::IsTrouble(const Error& error) {
  if (PLANTED_BUG(trouble_is_poison) && error.code == Code::kUnavailable) return false;
  return IsTransient(error.code) || error.code == Code::kLeaseLost ||
         error.code == Code::kPermission || error.code == Code::kCorrupt ||
         error.code == Code::kCancelled;
}

std::string Follower::ReasonOf(const Error& error) {
  return error.message.empty() ? "it failed without a reason" : error.message;
}

int64_t DigestOf(const events::Event& event) {
  const uint64_t start = (kFnvStart ^ static_cast<uint64_t>(event.position)) * 0x9e3779b97f4a7c15;
  uint64_t hash = Fnv1a(event.id, start);
  hash ^= hash >> 31;
  hash *= 0xbf58476d1ce4e5b9;
  return static_cast<int64_t>(hash ^ (hash >> 29));
}

void FollowerPulse::Take(std::span<const events::Event> events) {
  const MutexLock lock(mutex_);
  positions_.clear();
  for (const events::Event& event : events) positions_.push_back(event.position);
}

std::vector<int64_t> FollowerPulse::InFlight() const {
  const MutexLock lock(mutex_);
  return positions_;
}

Follower::Follower(events::EventLog& log, ReadModel& model, Env& env, Instance instance,
                   bool active, Builder builder, const FollowerOptions& options)
    : log_(log),
      pages_(log, options.batch, options.page_bytes, options.read_ahead),
      model_(model),
      env_(env),
      instance_(std::move(instance)),
      active_(active),
      builder_(std::move(builder)),
      options_(options),
      batch_size_(static_cast<size_t>(options.batch), options.batch_time),
      replay_size_(std::min(static_cast<size_t>(options.batch), kCarefulBatch), options.batch_time),
      idle_limit_(options.idle_limit) {}

std::vector<int> Follower::slots() const {
  std::vector<int> slots;
  for (const auto& [slot, owned] : owned_) slots.push_back(slot);
  return slots;
}

Status Follower::Own(std::vector<int> slots, int64_t generation, bool keep) {
  std::map<int, Owned> owned;
  std::vector<int> fresh;
  for (const int slot : slots) {
    const auto found = owned_.find(slot);
    if (keep && found != owned_.end()) {
      owned[slot] = found->second;
    } else {
      fresh.push_back(slot);
    }
  }
  MUSTER_ASSIGN(const auto states, model_.TakeOver(instance_, generation, fresh));
  for (const SlotState& state : states) {
    owned[state.slot] = {state.generation,    state.position, state.position,
                         state.effects_until, state.mark,     state.mark};
  }
  if (PLANTED_BUG(per_partition_checkpoints) && !slots.empty()) {
    // One checkpoint for all slots of a partition, stored under the partition's first slot.
    const int64_t position = owned[slots.front()].stored;
    for (auto& [slot, own] : owned) own.read = position;
  }
  owned_ = std::move(owned);
  page_.reset();
  read_ = {};
  flushed_ = env_.MonoNow();
  log_checked_ = false;
  is_stale_ = true;
  MUSTER_TRY(ReloadParked());
  is_stale_ = IsLoadedAcrossSwap();
  return {};
}

// Whether some slots were loaded before a swap of versions and others after it: a swap hands over
// the side effects of all slots at once. With such a mix the follower would only ever read the
// slots with side effects.
bool Follower::IsLoadedAcrossSwap() const {
  const auto always = std::count_if(owned_.begin(), owned_.end(), [&](const auto& owned) {
    return EffectsUntil(owned.second) == kEffectsAlways;
  });
  return always != 0 && always != std::ssize(owned_);
}

int64_t Follower::EffectsUntil(const Owned& owned) const {
  if (owned.effects_until != kEffectsByVersion) return owned.effects_until;
  return active_ ? kEffectsAlways : 0;
}

bool Follower::HasEffects(const events::Event& event) const {
  return event.position <= EffectsUntil(owned_.at(event.slot));
}

// After a swap the old version first continues with side effects up to the hand-over position.
bool Follower::HasEffectsLeft() const {
  return std::any_of(owned_.begin(), owned_.end(), [&](const auto& owned) {
    return owned.second.read < EffectsUntil(owned.second);
  });
}

// One processor at a time: it may keep state in memory.
Status Follower::UseProcessor(bool side_effects) {
  if (processor_ && side_effects_ == side_effects) return {};
  processor_.reset();
  side_effects_ = side_effects;
  MUSTER_ASSIGN(processor_, builder_(side_effects));
  return {};
}

ParkedEvent Follower::AsParked(const events::Event& event) const {
  return {event.slot, event.stream, event.version, HasEffects(event)};
}

std::vector<events::SlotPosition> Follower::Positions(bool side_effects) const {
  std::vector<events::SlotPosition> positions;
  positions.reserve(owned_.size());
  for (const auto& [slot, owned] : owned_) {
    if (!side_effects || owned.read < EffectsUntil(owned)) positions.push_back({slot, owned.read});
  }
  return positions;
}

// The next events that are all handled with side effects, or all without.
Result<events::EventPage> Follower::NextPage(bool side_effects) {
  MUSTER_ASSIGN(events::EventPage page, pages_.Read(Positions(side_effects)));
  if (side_effects) {
    std::erase_if(page.events, [&](const events::Event& event) { return !HasEffects(event); });
  }
  return page;
}

// The slots of this page contain nothing more up to its end.
bool Follower::HasRead(const events::EventPage& page, bool side_effects) {
  bool moved = false;
  for (auto& [slot, owned] : owned_) {
    const int64_t until = EffectsUntil(owned);
    if (side_effects && owned.read >= until) continue;
    const int64_t read = side_effects ? std::min(page.read_to, until) : page.read_to;
    if (owned.read >= read) continue;
    moved = true;
    owned.read = read;
    // Short of the page's end, the mark of an earlier position stays: it is still valid.
    if (read == page.read_to && page.end.position != 0) owned.read_mark = page.end;
  }
  return moved;
}

// Reloads the checkpoints, each in the generation in which we own it.
Status Follower::Refresh() {
  is_stale_ = true;
  page_.reset();
  read_ = {};
  std::map<int64_t, std::vector<int>> by_generation;
  for (const auto& [slot, owned] : owned_) by_generation[owned.generation].push_back(slot);
  for (const auto& [generation, slots] : by_generation) {
    MUSTER_ASSIGN(const auto states, model_.TakeOver(instance_, generation, slots));
    for (const SlotState& state : states) {
      Owned& owned = owned_[state.slot];
      owned.stored = state.position;
      owned.read = state.position;
      owned.effects_until = state.effects_until;
      owned.mark = owned.read_mark = state.mark;
    }
  }
  log_checked_ = false;
  MUSTER_TRY(ReloadParked());
  if (IsLoadedAcrossSwap()) {
    return Error{Code::kUnavailable, "the versions of '" + instance_.projection +
                                         "' were swapped while its checkpoints were read"};
  }
  is_stale_ = false;
  return {};
}

// Not called when slots are acquired, so that a worker becomes ready even if the log is
// unavailable. The first check includes the slots of other workers: if one of those must halt the
// projection, so must this worker. False: the log no longer has `read`, which was read beyond the
// checkpoints.
Result<bool> Follower::CheckLog(const events::EventMark& read) {
  std::vector<SlotState> slots;
  if (!log_checked_) {
    MUSTER_ASSIGN(slots, model_.Slots(instance_));
  } else {
    for (const auto& [slot, owned] : owned_) {
      slots.push_back({.slot = slot, .position = owned.stored, .mark = owned.mark});
    }
  }
  MUSTER_ASSIGN(const bool has_read, CheckLogStillHas(log_, instance_.projection, slots, read));
  log_checked_ = true;
  return has_read;
}

Result<Follower::Outcome> Follower::Step(std::stop_token stop) {
  pulse_.sound = false;  // also if it throws
  auto outcome = TryStep(std::move(stop));
  pulse_.sound = outcome.has_value();
  return outcome;
}

Result<Follower::Outcome> Follower::TryStep(std::stop_token stop) {
  if (owned_.empty()) return Outcome::kIdle;
  if (is_stale_) MUSTER_TRY(Refresh());
  if (!log_checked_) MUSTER_TRY(CheckLog({}));
  const MonoTime now = env_.MonoNow();
  if (now - looked_ >= kLookEvery && !parked_.empty()) MUSTER_TRY(ReloadParked());
  const bool replays = replaying_.has_value();
  if (replays) MUSTER_TRY(ReplaySome(stop));
  if (now - flushed_ >= options_.flush_every) MUSTER_TRY(Flush());
  if (!page_) MUSTER_TRY(ReadPage());
  if (!page_) return Outcome::kMoved;
  const bool some = !page_->events.empty();
  if (some) {
    const Batch rest{std::span(page_->events).subspan(next_)};
    MUSTER_ASSIGN(const size_t settled, HandleNext(rest, stop));
    next_ += settled;
  }
  // The page may have been dropped, to be read again from the checkpoints.
  const bool moved = page_ && next_ == page_->events.size() && EndPage();
  if (some || moved || replays) return Outcome::kMoved;
  care_left_ = 0;  // caught up
  return Outcome::kIdle;
}

Status Follower::ReadPage() {
  page_effects_ = HasEffectsLeft();
  MUSTER_TRY(UseProcessor(page_effects_));
  MUSTER_ASSIGN(events::EventPage page, NextPage(page_effects_));
  next_ = 0;
  // A page without progress may lack its end.
  const bool further = page.end.position != 0 && page.end != read_;
  if (further && !PLANTED_BUG(pages_are_not_compared)) {
    // The log may have been restored, and have grown again, since the last check: committing or
    // skipping events now would hide that. Checked after reading, since the page may come from
    // either log.
    MUSTER_ASSIGN(const bool same, CheckLog(read_));
    // The checkpoints are still valid; events read beyond them are read again.
    if (!same) return Refresh();
    read_ = page.end;
  }
  page_ = std::move(page);
  return {};
}

bool Follower::EndPage() {
  const bool moved = HasRead(*page_, page_effects_);
  page_.reset();
  return moved;
}

ReadModelProgress Follower::MovesFor(std::span<const events::Event> events) const {
  struct Slot {
    SlotMove move = {};
    const events::Event* last = nullptr;
  };
  std::map<int, Slot> slots;
  for (const events::Event& event : events) {
    auto& [move, last] = slots[event.slot];
    if (!last) {
      const Owned& owned = owned_.at(event.slot);
      move = {event.slot, owned.generation, owned.stored, 0, 0, 0, owned.effects_until};
    }
    last = &event;
    ++move.handled;
    move.digest ^= DigestOf(event);
  }
  ReadModelProgress progress;
  for (auto& [number, slot] : slots) {
    slot.move.to = slot.last->position;
    slot.move.mark = events::MarkOf(*slot.last);
    progress.moves.push_back(slot.move);
  }
  return progress;
}

Status Follower::Commit(Transaction& transaction, const ReadModelProgress& progress) {
  MUSTER_TRY(model_.Commit(transaction, instance_, progress));
  for (const SlotMove& move : progress.moves) {
    Owned& owned = owned_[move.slot];
    owned.stored = move.to;
    if (move.mark.position != 0) owned.mark = move.mark;
    if (owned.read < move.to) {
      owned.read = move.to;
      owned.read_mark = move.mark;
    }
    pulse_.handled += move.handled;
  }
  pulse_.handled += std::ssize(progress.replayed) - std::ssize(progress.parked);
  return {};
}

Status Follower::Flush() {
  ReadModelProgress progress;
  for (const auto& [slot, owned] : owned_) {
    if (owned.read <= owned.stored) continue;
    // The mark as of the read. A log restored since then could now have another event there.
    progress.moves.push_back({slot, owned.generation, owned.stored, owned.read, 0, 0,
                              owned.effects_until, 0, owned.read_mark});
  }
  flushed_ = env_.MonoNow();
  MUSTER_TRY(CheckLog({}));
  if (progress.moves.empty()) return {};
  MUSTER_ASSIGN(const auto transaction, model_.Begin());
  Status flushed = Commit(*transaction, progress);
  if (!flushed && flushed.error().code == Code::kLeaseLost) return Refresh();
  return flushed;
}

}  // namespace muster::replica
