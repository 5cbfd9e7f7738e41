#include "sim/replica_world.h"

namespace muster::sim {

using std::chrono::seconds;

namespace {

// The workers must not end while the operator is paused: none would be left to build the version.
class Beginning {
 public:
  explicit Beginning(bool& flag) : flag_(flag) { flag_ = true; }
  ~Beginning() { flag_ = false; }
  Beginning(const Beginning&) = delete;
  Beginning& operator=(const Beginning&) = delete;

 private:
  bool& flag_;
};

}  // namespace

// Scales the set, replays parked streams, rebuilds, or pauses the projection and resumes it,
// perhaps before any worker has seen it.
void ReplicaWorld::Operate(Env& env, std::stop_token stop) {
  Random& random = sim_->random();
  while (!AllDone() && !stop.stop_requested() && sim_->faults_on()) {
    if (rebuilds_ && !random.OneIn(3)) {
      RebuildSome(env, stop);
    } else if (random.OneIn(3)) {
      static_cast<void>(
          replica::ScaleSet(store_->Truth(), kSet, static_cast<int>(random.Between(1, 4))));
    } else if (random.OneIn(2)) {
      cured_ |= random.OneIn(2);
      Replay();
    } else {
      Pause(true);
      env.Sleep(seconds(random.OneIn(3) ? random.Between(10, 40) : random.Between(0, 8)), stop);
      Pause(false);
    }
    env.Sleep(seconds(random.Between(rebuilds_ ? 2 : 10, rebuilds_ ? 30 : 90)), stop);
  }
  Pause(false);  // it may have crashed before
  if (rebuilds_) EndRebuild(env);
  // Faults are over, so nothing hides a pause that was left in force.
  for (int times = 0; times < 4 && late_; ++times) {
    env.Sleep(seconds(random.Between(4, 12)), {});
    Pause(true);
    env.Sleep(seconds(random.Between(1, 8)), {});
    Pause(false);
  }
  late_ = false;
}

// Any step of a rebuild, whether it is due or not.
void ReplicaWorld::RebuildSome(Env& env, std::stop_token stop) {
  replica::Rebuild rebuild(*store_, *log_, *model_, env, kSet, NewProjection(nullptr));
  const auto desired = replica::DesiredFor(store_->Truth(), kSet, kProjection).value();
  int64_t step = sim_->random().Between(0, 3);
  if (!sim_->random().OneIn(3)) {
    const bool built = desired.versions.size() > 1;
    step = !built ? 0 : desired.versions.back() > desired.active ? 1 : 2 + step % 2;
  }
  Status done;
  if (step == 0) {
    ++tries_;
    const Beginning beginning(is_beginning_);
    if (const auto begun = rebuild.Begin(); !begun) done = begun.error();
  } else if (step == 3) {
    if (const auto finished = rebuild.Finish(); !finished) done = finished.error();
  } else {
    done = rebuild.Swap(step == 2, stop);
    if (done && appended_ < events_) sim_->Sometimes("61 versions are swapped in mid-stream");
  }
  if (!done && (done.error().code == Code::kInternal || done.error().code == Code::kCorrupt)) {
    Violate("V", done.error().message);
  }
}

// As an operator who finds one in progress.
void ReplicaWorld::EndRebuild(Env& env) {
  replica::Rebuild rebuild(*store_, *log_, *model_, env, kSet, NewProjection(nullptr));
  for (int tries = 0; tries < 10; ++tries) {
    const auto finished = rebuild.Finish();
    if (finished || finished.error().code == Code::kNotFound) return;
    env.Sleep(seconds(5), {});
  }
}

void ReplicaWorld::Pause(bool paused) {
  if (!replica::PauseProjection(store_->Truth(), kSet, kProjection, paused))
    Violate("V", "no pause");
  if (paused && !paused_) ++pauses_;
  paused_ = paused;
}

void ReplicaWorld::Replay() {
  for (const int version : Versions()) {
    ++tries_;
    for (const auto& [stream, found] : Parked(version)) replaying_.emplace(version, stream);
    if (!replica::ReplayParked(store_->Truth(), model_->Truth(), {kSet, kProjection, version},
                               "")) {
      Violate("V", "no replay");
    }
  }
}

}  // namespace muster::sim
