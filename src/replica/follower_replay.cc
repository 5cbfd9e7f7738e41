// Replays parked streams. A stream is either handled, parked or replaying; the last two are
// durable, and in both its events wait in the read model, new ones at the end. A replay takes them
// from the front, a few per step, so that other streams continue. The stream is handled normally
// again once none of its events is left.

#include <algorithm>

#include "core/log.h"
#include "core/planted_bug.h"
#include "replica/follower.h"

namespace muster::replica {

// Reloads the parked streams from the read model. The cache is never older than our last change.
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

// Keeps the slot's position, but only while it is ours.
ReadModelProgress Follower::InPlace(int slot) const {
  const Owned& owned = owned_.at(slot);
  return {
      .moves = {{slot, owned.generation, owned.stored, owned.stored, 0, 0, owned.effects_until}}};
}

// The first waiting events, up to a small batch. Empty: the first is no longer in the log.
Result<std::vector<events::Event>> Follower::NextToReplay() {
  const std::vector<int64_t>& waiting = replaying_->versions;
  const auto most = static_cast<int>(replay_size_.size());
  MUSTER_ASSIGN(auto events, log_.ReadStream(replaying_->stream, waiting.front() - 1, most));
  // The stream may have more events than those waiting: unparked ones come through their slot. And
  // a batch is handled with side effects or without, not mixed.
  const bool quiet = replaying_->quiet.contains(waiting.front());
  size_t next = 0;
  std::erase_if(events, [&](const events::Event& event) {
    if (next == waiting.size() || event.version != waiting[next]) return true;
    if (replaying_->quiet.contains(event.version) != quiet) next = waiting.size();
    if (next == waiting.size()) return true;
    ++next;
    return false;
  });
  return events;
}

Status Follower::ReplaySome(std::stop_token stop) {
  MUSTER_ASSIGN(const std::vector<events::Event> events, NextToReplay());
  if (events.empty()) {
    const Status stayed = StayParked(replaying_->versions.front(),
                                     Error{Code::kNotFound, "the event is not in the log"});
    return stayed ? stayed : Rewind(1, stayed.error());
  }
  MUSTER_ASSIGN(const size_t settled, HandleNext({events, /*replay=*/true}, std::move(stop)));
  if (settled == 0) return {};
  auto& waiting = replaying_->versions;
  waiting.erase(waiting.begin(), waiting.begin() + static_cast<ptrdiff_t>(settled));
  if (!waiting.empty()) return {};
  if (PLANTED_BUG(replayed_streams_stay_parked)) {
    replaying_.reset();
    return {};
  }
  // More events of the stream may have been parked since.
  return ReloadParked();
}

ReadModelProgress Follower::ReplayedFor(std::span<const events::Event> events) const {
  ReadModelProgress progress = InPlace(replaying_->slot);
  for (const events::Event& event : events) {
    progress.replayed.push_back({event.slot, event.stream, event.version});
  }
  return progress;
}

// Ends the replay with the new reason.
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
  MUSTER_TRY(model_.Commit(*transaction, instance_, progress));
  return ReloadParked();
}

}  // namespace muster::replica
