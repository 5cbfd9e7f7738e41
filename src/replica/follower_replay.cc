// Replaying parked streams. A stream is handled, parked or replaying; the last two are durable, and
// in both its events wait in the read model, new ones behind the others. A replay takes them from
// the front, some with each step, so that other streams go on. The stream is handled again when the
// read model says that none of its events is left.

#include <algorithm>

#include "base/log.h"
#include "base/planted_bug.h"
#include "replica/follower.h"

namespace muster {

// What the read model knows of parked streams. What is remembered of them is never older than the
// last change of ours.
Status Follower::ReloadParked() {
  replaying_.reset();
  looked_ = MonoTime{};
  MUSTER_ASSIGN(auto streams, model_.Parked(instance_, slots()));
  looked_ = env_.MonoNow();
  parked_.clear();
  for (ParkedStream& stream : streams) {
    parked_[stream.stream] = stream.slot;
    if (stream.replay && !replaying_) replaying_ = std::move(stream);
  }
  return {};
}

// The slot stays where it is, but only while it is ours.
ReadModelProgress Follower::InPlace(int slot) const {
  const Owned& owned = owned_.at(slot);
  return {
      .moves = {{slot, owned.generation, owned.stored, owned.stored, 0, 0, owned.effects_until}}};
}

// The first events that wait, as many as a small batch has. None: the first is not in the log any
// more.
Result<std::vector<Event>> Follower::NextToReplay() {
  const std::vector<int64_t>& waiting = replaying_->versions;
  const auto most = static_cast<int>(std::min(batch_size_.size(), kCarefulBatch));
  MUSTER_ASSIGN(auto events, log_.ReadStream(replaying_->stream, waiting.front() - 1, most));
  // The stream may have more than what waits: what is not parked comes by its slot. And these are
  // all handled with side effects, or all without.
  const bool quiet = replaying_->quiet.contains(waiting.front());
  size_t next = 0;
  std::erase_if(events, [&](const Event& event) {
    if (next == waiting.size() || event.version != waiting[next]) return true;
    if (replaying_->quiet.contains(event.version) != quiet) next = waiting.size();
    if (next == waiting.size()) return true;
    ++next;
    return false;
  });
  return events;
}

Status Follower::ReplaySome(std::stop_token stop) {
  MUSTER_ASSIGN(const std::vector<Event> events, NextToReplay());
  if (events.empty()) {
    return StayParked(replaying_->versions.front(),
                      Error{Code::kNotFound, "the event is not in the log"});
  }
  const bool suspect = std::any_of(events.begin(), events.end(), [&](const Event& event) {
    return hangs_.contains(event.position);
  });
  Status handled = suspect ? Status(Error{Code::kInternal, "a processor has hung in an event"})
                           : Replayed(events);
  if (!handled && !IsTrouble(handled.error())) return ReplayOneByOne(events, std::move(stop));
  if (!handled) return AfterTrouble(handled.error());
  auto& waiting = replaying_->versions;
  waiting.erase(waiting.begin(), waiting.begin() + std::ssize(events));
  if (!waiting.empty()) return {};
  if (PLANTED_BUG(replayed_streams_stay_parked)) {
    replaying_.reset();
    return {};
  }
  // Others of the stream may have been parked behind these.
  return ReloadParked();
}

// Whatever became of a commit, the read model knows. Where a slot is still ours, but elsewhere, or
// a stream is not parked any more, an operator was faster.
Status Follower::AfterTrouble(const Error& error) {
  MUSTER_TRY(Refresh());
  if (error.code == Code::kLeaseLost) return {};
  return error;
}

// Up to the first that still fails.
Status Follower::ReplayOneByOne(std::span<const Event> events, std::stop_token stop) {
  for (const Event& event : events) {
    if (stop.stop_requested()) return ReloadParked();
    const auto hung = hangs_.find(event.position);
    if (hung != hangs_.end() && hung->second >= kMaxHangs) {
      return StayParked(event.version, SuspectError(hung->second));
    }
    Status handled = Replayed({&event, 1});
    if (!handled && IsTrouble(handled.error())) return AfterTrouble(handled.error());
    if (!handled) return StayParked(event.version, handled.error());
  }
  return ReloadParked();
}

// Written down beforehand: what was parked may have ended processes before.
Status Follower::Replayed(std::span<const Event> events) {
  MUSTER_TRY(NoteInFlight(events));
  MUSTER_ASSIGN(const auto transaction, model_.Begin());
  const bool side_effects = !replaying_->quiet.contains(events.front().version);
  MUSTER_TRY(Dispatch(events, side_effects, *transaction));
  ReadModelProgress progress = InPlace(replaying_->slot);
  for (const Event& event : events) {
    progress.replayed.push_back({event.slot, event.stream, event.version});
  }
  return Commit(*transaction, progress);
}

// Ends the replay, with the new reason.
Status Follower::StayParked(int64_t version, const Error& error) {
  Log(Level::kError, "a parked event fails again; its stream stays parked",
      {{"projection", instance_.projection},
       {"stream", replaying_->stream},
       {"version", version},
       {"error", error.message}});
  MUSTER_ASSIGN(const auto transaction, model_.Begin());
  ReadModelProgress progress = InPlace(replaying_->slot);
  progress.failed.push_back({replaying_->slot, replaying_->stream, version});
  progress.error = ReasonOf(error);
  const Status stayed = model_.Commit(*transaction, instance_, progress);
  return stayed ? ReloadParked() : AfterTrouble(stayed.error());
}

}  // namespace muster
