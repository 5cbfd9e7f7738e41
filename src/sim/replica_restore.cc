// The event log is restored from a backup, or loses commits in a failover, and then gets other
// events at the same positions. Versions that have handled the lost events must halt, and be
// correct again after the operator has followed the message.

#include <algorithm>

#include "sim/replica_world.h"

namespace muster::sim {

using std::chrono::seconds;

namespace {

constexpr int64_t kMostRestores = 2;
constexpr int64_t kFewEvents = 6;
constexpr nanoseconds kLongestRestore = seconds(30);
constexpr nanoseconds kOperatorTime = seconds(30);
// A follower compares every five seconds, and with each page that it reads.
constexpr nanoseconds kHaltTime = seconds(60);

}  // namespace

void ReplicaWorld::MaybeRestoreLog() {
  if (crowd_ || appended_ == 0 || life_ == kMostRestores) return;
  if (!sim_->Fires(Fault::kRestoredLog, 100)) return;
  Random& random = sim_->RandomOf(Fault::kRestoredLog);
  const int64_t most = random.OneIn(3) ? appended_ : std::min(appended_, kFewEvents);
  const int64_t lost = random.Between(1, most);
  const int64_t kept = appended_ - lost;
  sim_->Note("the event log goes back from " + std::to_string(appended_) + " to " +
             std::to_string(kept) + " events");
  log_->GoBackTo(kept, random.UpTo(kLongestRestore));
  appended_ = kept;
  ++life_;
  ++tries_;
  other_place_ = random.Between(0, streams_ - 1);
  for (const auto& [slot, position] : position_) {
    if (position > kept && !dropped_.contains(slot.first)) Spoil(slot.first);
  }
  if (spoiled_.empty())
    sim_->Sometimes("62 the event log is restored, and has lost nothing that was handled");
  // By the next check it may have grown beyond its old end.
  const int64_t most_now = events_ - (late_ ? 2 : 1);
  for (int64_t more = random.Between(0, 2 * lost); more > 0 && appended_ < most_now; --more)
    AppendNext();
}

void ReplicaWorld::Spoil(int version) {
  if (!spoiled_.emplace(version, sim_->now()).second) return;
  ever_spoiled_ = true;
  sim_->Sometimes("62 the event log is restored, and has lost what was handled");
}

// A worker may still commit what it read before.
bool ReplicaWorld::IsOfThisLog(const replica::ReadModelProgress& progress) {
  return std::all_of(progress.moves.begin(), progress.moves.end(), [&](const auto& move) {
    if (move.mark.position == 0) return true;
    return log_->Truth().MarksAt({&move.mark.position, 1}).value().front() == move.mark;
  });
}

// Called when a version that has to halt commits events.
void ReplicaWorld::CheckHalt(int version) {
  if (slow_ > nanoseconds(0) || hang_ >= 0 || sim_->Unwinding()) return;
  if (sim_->now() < std::max(spoiled_.at(version), sim_->calm_since()) + kHaltTime) return;
  Violate("L", "a projection goes on by a log that has lost what it handled");
}

// It starts from the first event again.
void ReplicaWorld::Reset(int version) {
  sim_->Note("version " + std::to_string(version) + " is reset");
  const auto of_version = [version](const auto& entry) { return entry.first.first == version; };
  std::erase_if(handled_, of_version);
  std::erase_if(position_, of_version);
  std::erase_if(replaying_, [version](const auto& stream) { return stream.first == version; });
  committed_[version] = 0;
  spoiled_.erase(version);
}

// An operator follows the message before the worker is started again.
void ReplicaWorld::Halted(const Error& why, Env& env, std::stop_token stop) {
  sim_->Note("halts: " + why.message);
  if (++halts_ > 20 + 2 * sim_->faults_fired()) {
    return Violate("B", "workers have halted " + std::to_string(halts_) + " times");
  }
  env.Sleep(sim_->RandomOf(Fault::kRestoredLog).UpTo(kOperatorTime), stop);
  while (!spoiled_.empty() && !stop.stop_requested()) {
    Remedy(env);
    env.Sleep(seconds(5), stop);
  }
}

void ReplicaWorld::Remedy(Env& env) {
  ++tries_;
  const auto desired = replica::DesiredFor(store_->Truth(), kSet, kProjection).value();
  const auto projection = NewProjection(nullptr);
  if (desired.versions.size() > 1 || !desired.dropping.empty()) {
    replica::Rebuild rebuild(*store_, *log_, *model_, env, kSet, projection);
    static_cast<void>(rebuild.Finish());
  }
  if (!spoiled_.contains(desired.active)) return;
  if (replica::ResetProjection(*store_, *log_, *model_, kSet, *projection))
    sim_->Sometimes("62 a worker halts, and the projection is reset");
}

}  // namespace muster::sim
