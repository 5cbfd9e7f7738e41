#include "replica/follower.h"

#include <algorithm>

#include "base/fnv.h"
#include "base/log.h"
#include "base/planted_bug.h"

namespace muster {
namespace {

constexpr milliseconds kLookEvery{1'000};
constexpr milliseconds kLongestDelay{60'000};
constexpr int kMaxTroubles = 8;
constexpr size_t kMaxParked = 100;  // more than poison: something is wrong with all of it

}  // namespace

bool Follower::IsTrouble(const Error& error) {
  return IsTransient(error.code) || error.code == Code::kLeaseLost ||
         error.code == Code::kPermission || error.code == Code::kCancelled;
}

std::string Follower::ReasonOf(const Error& error) {
  return error.message.empty() ? "it failed without a reason" : error.message;
}

int64_t DigestOf(const Event& event) {
  const uint64_t start = (kFnvStart ^ static_cast<uint64_t>(event.position)) * 0x9e3779b97f4a7c15;
  uint64_t hash = Fnv1a(event.id, start);
  hash ^= hash >> 31;
  hash *= 0xbf58476d1ce4e5b9;
  return static_cast<int64_t>(hash ^ (hash >> 29));
}

Follower::Follower(EventLog& log, ReadModel& model, Env& env, Instance instance, bool active,
                   Builder builder, const FollowerOptions& options)
    : log_(log),
      pages_(log, options.batch, options.read_ahead),
      model_(model),
      env_(env),
      instance_(std::move(instance)),
      active_(active),
      builder_(std::move(builder)),
      options_(options) {}

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
    owned[state.slot] = {state.generation, state.position, state.position, state.effects_until};
  }
  if (PLANTED_BUG(per_partition_checkpoints) && !slots.empty()) {
    // One checkpoint for all slots of a partition, kept under the partition's first slot.
    const int64_t position = owned[slots.front()].stored;
    for (auto& [slot, own] : owned) own.read = position;
  }
  owned_ = std::move(owned);
  flushed_ = env_.MonoNow();
  return LookAtParked();
}

int64_t Follower::EffectsUntil(const Owned& owned) const {
  if (owned.effects_until != kEffectsByVersion) return owned.effects_until;
  return active_ ? kEffectsAlways : 0;
}

bool Follower::HasEffects(const Event& event) const {
  return event.position <= EffectsUntil(owned_.at(event.slot));
}

// After a swap the old version first goes on to where it has handed over, with side effects.
bool Follower::HasEffectsLeft() const {
  return std::any_of(owned_.begin(), owned_.end(), [&](const auto& owned) {
    return owned.second.read < EffectsUntil(owned.second);
  });
}

// There is one processor at a time: it may keep something in memory.
Status Follower::UseProcessor(bool side_effects) {
  if (processor_ && side_effects_ == side_effects) return {};
  processor_.reset();
  side_effects_ = side_effects;
  MUSTER_ASSIGN(processor_, builder_(side_effects));
  return {};
}

ParkedEvent Follower::AsParked(const Event& event) const {
  return {event.slot, event.stream, event.version, HasEffects(event)};
}

std::vector<SlotPosition> Follower::Positions(bool side_effects) const {
  std::vector<SlotPosition> positions;
  positions.reserve(owned_.size());
  for (const auto& [slot, owned] : owned_) {
    if (!side_effects || owned.read < EffectsUntil(owned)) positions.push_back({slot, owned.read});
  }
  return positions;
}

// The next events that are all handled with side effects, or all without.
Result<EventPage> Follower::NextPage(bool side_effects) {
  MUSTER_ASSIGN(EventPage page, pages_.Read(Positions(side_effects)));
  if (side_effects) {
    std::erase_if(page.events, [&](const Event& event) { return !HasEffects(event); });
  }
  return page;
}

// Nothing more lies up to that position in the slots that a page was read for.
bool Follower::HasRead(int64_t position, bool side_effects) {
  bool moved = false;
  for (auto& [slot, owned] : owned_) {
    const int64_t until = EffectsUntil(owned);
    if (side_effects && owned.read >= until) continue;
    const int64_t read = side_effects ? std::min(position, until) : position;
    moved |= owned.read < read;
    owned.read = std::max(owned.read, read);
  }
  return moved;
}

// Reads the checkpoints again, each in the generation in which we own it.
Status Follower::Refresh() {
  std::map<int64_t, std::vector<int>> by_generation;
  for (const auto& [slot, owned] : owned_) by_generation[owned.generation].push_back(slot);
  for (const auto& [generation, slots] : by_generation) {
    MUSTER_ASSIGN(const auto states, model_.TakeOver(instance_, generation, slots));
    for (const SlotState& state : states) {
      Owned& owned = owned_[state.slot];
      owned.stored = state.position;
      owned.read = state.position;
      owned.effects_until = state.effects_until;
    }
  }
  return LookAtParked();
}

Result<Follower::Outcome> Follower::Step(std::stop_token stop) {
  if (owned_.empty()) return Outcome::kIdle;
  const MonoTime now = env_.MonoNow();
  if (now - looked_ >= kLookEvery && !parked_.empty()) MUSTER_TRY(LookAtParked());
  const bool replays = replaying_.has_value();
  if (replays) MUSTER_TRY(ReplaySome(stop));
  if (now - flushed_ >= options_.flush_every) MUSTER_TRY(Flush());
  const bool side_effects = HasEffectsLeft();
  MUSTER_TRY(UseProcessor(side_effects));
  MUSTER_ASSIGN(const EventPage page, NextPage(side_effects));
  if (!page.events.empty()) {
    Status handled = HandleBatch(page.events);
    if (!handled && !IsTrouble(handled.error())) handled = HandleOneByOne(page.events, stop);
    if (!handled) {
      const Error error = handled.error();
      if (error.code == Code::kCancelled) return error;
      MUSTER_TRY(Refresh());
      // Still ours, but elsewhere: an operator has moved a slot.
      if (error.code == Code::kLeaseLost) return Outcome::kMoved;
      // The database answers, yet the batch does not get through again and again: perhaps the
      // events are to blame, as with a statement that takes too long.
      const bool in_vain = error.code == Code::kUnavailable || error.code == Code::kUnknownOutcome;
      if (!in_vain || ++troubles_ < kMaxTroubles) return error;
      MUSTER_TRY(HandleOneByOne(page.events, stop));
    }
    troubles_ = 0;
  }
  const bool moved = HasRead(page.read_to, side_effects);
  return moved || replays || !page.events.empty() ? Outcome::kMoved : Outcome::kIdle;
}

ReadModelProgress Follower::MovesFor(std::span<const Event> events) const {
  std::map<int, SlotMove> moves;
  for (const Event& event : events) {
    const Owned& owned = owned_.at(event.slot);
    auto [found, fresh] = moves.try_emplace(event.slot);
    SlotMove& move = found->second;
    if (fresh) move = {event.slot, owned.generation, owned.stored, 0, 0, 0, owned.effects_until};
    move.to = event.position;
    ++move.handled;
    move.digest ^= DigestOf(event);
  }
  ReadModelProgress progress;
  for (const auto& [slot, move] : moves) progress.moves.push_back(move);
  return progress;
}

// Lets a processor have the events, watched.
Status Follower::Hand(std::span<const Event> events, bool side_effects, Transaction& transaction) {
  if (const Status built = UseProcessor(side_effects); !built) {
    return Error{Code::kUnavailable, built.error().message};  // not the events' fault
  }
  pulse_.position = events.front().position;
  pulse_.busy_since_ns = std::max<int64_t>(1, env_.MonoNow().time_since_epoch().count());
  Status handled;
  try {
    handled = processor_->Handle(events, transaction);
  } catch (const std::exception& error) {
    handled = Error{Code::kInternal, std::string("the processor threw: ") + error.what()};
  }
  pulse_.busy_since_ns = 0;
  return handled;
}

Status Follower::Commit(Transaction& transaction, const ReadModelProgress& progress) {
  MUSTER_TRY(model_.Commit(transaction, instance_, progress));
  for (const SlotMove& move : progress.moves) {
    Owned& owned = owned_[move.slot];
    owned.stored = move.to;
    owned.read = std::max(owned.read, move.to);
    pulse_.handled += move.handled;
  }
  pulse_.handled += std::ssize(progress.replayed) - std::ssize(progress.parked);
  return {};
}

// All of a batch in one transaction. What belongs to parked streams waits with them.
Status Follower::HandleBatch(std::span<const Event> events) {
  for (const Event& event : events) {
    if (hangs_.empty()) break;
    if (hangs_.contains(event.position)) {
      return Error{Code::kInternal, "a processor has hung in an event of this batch"};
    }
  }
  MUSTER_ASSIGN(const auto transaction, model_.Begin());
  ReadModelProgress progress = MovesFor(events);
  const bool side_effects = HasEffects(events.front());
  if (parked_.empty()) {
    MUSTER_TRY(Hand(events, side_effects, *transaction));
  } else {
    std::vector<Event> free;
    for (const Event& event : events) {
      if (parked_.contains(event.stream)) {
        progress.parked.push_back(AsParked(event));
      } else {
        free.push_back(event);
      }
    }
    if (!free.empty()) MUSTER_TRY(Hand(free, side_effects, *transaction));
  }
  return Commit(*transaction, progress);
}

// Finds the event that a batch fails for. The ones before it are handled, it is tried again and in
// the end parked, and so on with the rest.
Status Follower::HandleOneByOne(std::span<const Event> events, std::stop_token stop) {
  for (const Event& event : events) {
    if (stop.stop_requested()) return Error{Code::kCancelled, "asked to stop"};
    // A part of the batch may have been committed by now.
    if (event.position <= owned_.at(event.slot).stored) continue;
    MUSTER_TRY(HandleWithRetries(event, stop));
  }
  return {};
}

Status Follower::HandleOne(const Event& event) {
  MUSTER_ASSIGN(const auto transaction, model_.Begin());
  ReadModelProgress progress = MovesFor({&event, 1});
  if (parked_.contains(event.stream)) {
    progress.parked.push_back(AsParked(event));
  } else {
    MUSTER_TRY(Hand({&event, 1}, HasEffects(event), *transaction));
  }
  return Commit(*transaction, progress);
}

Status Follower::HandleWithRetries(const Event& event, std::stop_token stop) {
  const auto hung = hangs_.find(event.position);
  if (hung != hangs_.end() && hung->second >= kMaxHangs && !parked_.contains(event.stream)) {
    return Park(event, Error{Code::kInternal,
                             "its processor hung " + std::to_string(hung->second) + " times"});
  }
  milliseconds delay = options_.retry_delay;
  for (int attempt = 1;; ++attempt) {
    const Status handled = HandleOne(event);
    if (handled) return {};
    const Error& error = handled.error();
    if (error.code == Code::kLeaseLost || error.code == Code::kUnknownOutcome) return error;
    // Whose fault it is can be told only while the database answers.
    if (IsTrouble(error)) MUSTER_TRY(Refresh());
    if (attempt >= options_.max_attempts) return Park(event, error);
    Log(Level::kWarning, "an event failed; it will be tried again",
        {{"projection", instance_.projection},
         {"stream", event.stream},
         {"position", event.position},
         {"attempt", attempt},
         {"error", error.message}});
    if (!env_.Sleep(delay + env_.Jitter(delay / 2), stop)) {
      return Error{Code::kCancelled, "asked to stop"};
    }
    delay = std::min(delay * 2, kLongestDelay);
  }
}

Status Follower::Park(const Event& event, const Error& error) {
  if (parked_.size() >= kMaxParked) {
    return Error{
        Code::kReadOnly,
        std::to_string(kMaxParked) + " streams are parked; the last error: " + error.message,
        "so many failures have one cause: fix it, then replay what is parked"};
  }
  MUSTER_ASSIGN(const auto transaction, model_.Begin());
  ReadModelProgress progress = MovesFor({&event, 1});
  progress.parked.push_back(AsParked(event));
  progress.error = ReasonOf(error);
  MUSTER_TRY(Commit(*transaction, progress));
  parked_[event.stream] = event.slot;
  Log(Level::kError, "a stream was parked; its events wait, the others go on",
      {{"projection", instance_.projection},
       {"stream", event.stream},
       {"position", event.position},
       {"error", error.message}});
  if (on_parked) on_parked(event.stream, error.message);
  return {};
}

Status Follower::Flush() {
  ReadModelProgress progress;
  for (const auto& [slot, owned] : owned_) {
    if (owned.read <= owned.stored) continue;
    progress.moves.push_back(
        {slot, owned.generation, owned.stored, owned.read, 0, 0, owned.effects_until});
  }
  flushed_ = env_.MonoNow();
  if (progress.moves.empty()) return {};
  MUSTER_ASSIGN(const auto transaction, model_.Begin());
  Status flushed = Commit(*transaction, progress);
  if (!flushed && flushed.error().code == Code::kLeaseLost) return Refresh();
  return flushed;
}

}  // namespace muster
