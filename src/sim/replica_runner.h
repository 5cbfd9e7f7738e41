#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "replica/replica.h"
#include "sim/simulation.h"

namespace muster::sim {

// Steps the followers itself: a simulated process is one thread. During a slow batch, or a pause
// between two attempts, the worker still looks at its set, as it would beside a thread.
//
// It is the Env of its worker.
class InlineRunner final : public replica::FollowerRunner, public Env {
 public:
  // `pause` returns the number of the projection's current pause; 0: not paused.
  InlineRunner(Simulation& sim, Env& env, std::function<bool()> done,
               std::function<int64_t()> pause)
      : sim_(sim), env_(env), done_(std::move(done)), pause_(std::move(pause)) {}

  // The worker looks at its set this often.
  void SetWorker(replica::Worker& worker, nanoseconds interval) {
    worker_ = &worker;
    interval_ = interval;
  }
  std::stop_source& Stop() { return stop_; }

  // Within a step: lets time pass for the processor.
  void Spend(nanoseconds duration) { static_cast<void>(LookOn(duration, {})); }

  WallTime WallNow() override { return env_.WallNow(); }
  MonoTime MonoNow() override { return env_.MonoNow(); }
  uint64_t Random() override { return env_.Random(); }
  void RunAll(std::vector<std::function<void()>> threads) override {
    env_.RunAll(std::move(threads));
  }
  bool Sleep(nanoseconds duration, std::stop_token stop) override {
    if (stepping_ == nullptr || is_looking_) return env_.Sleep(duration, std::move(stop));
    return LookOn(duration, stop);
  }

  bool HaveThreads() const override { return false; }

  void Start(replica::Follower& follower) override {
    given_.push_back({&follower, ++numbers_});
    stops_[&follower] = {};
    failures_.erase(&follower);
  }

  // A thread may be within a step when stopped: it ends, but is not back yet.
  bool Take(replica::Follower& follower, milliseconds /*patience*/) override {
    stops_[&follower].request_stop();
    const auto erased =
        std::erase_if(given_, [&](const Given& given) { return given.follower == &follower; });
    if (&follower == stepping_) return false;
    const bool within_a_step = erased > 0 && sim_.random().OneIn(2);
    if (within_a_step) return false;
    failures_.erase(&follower);
    return true;
  }

  std::optional<Error> Failure(replica::Follower& follower) override {
    const auto found = failures_.find(&follower);
    if (found == failures_.end()) return std::nullopt;
    Error error = found->second;
    failures_.erase(found);
    return error;
  }

  void Wait(nanoseconds duration, std::stop_token stop) override {
    const bool throughout = pause_() != 0 && pause_() == before_look_;
    seen_pause_ = throughout && !trouble_ ? pause_() : 0;
    trouble_ = false;
    StepAll(duration, stop);
    before_look_ = pause_();
  }

  // The last look failed.
  void NoteTrouble() { trouble_ = true; }

  // Whether the last look was within a pause that still lasts: its worker has seen it.
  bool IsPaused() const { return seen_pause_ != 0 && seen_pause_ == pause_(); }

 private:
  bool LookOn(nanoseconds duration, const std::stop_token& stop) {
    const MonoTime end = env_.MonoNow() + duration;
    const nanoseconds most = std::min<nanoseconds>(std::chrono::seconds(4), interval_);
    for (MonoTime now = end - duration; now < end; now = env_.MonoNow()) {
      if (!env_.Sleep(std::min(most, end - now), stop)) return false;
      // If it is out, Run finds the same once the batch has ended.
      is_looking_ = true;
      static_cast<void>(worker_->Look());
      is_looking_ = false;
    }
    return true;
  }

  void StepAll(nanoseconds duration, const std::stop_token& stop) {
    if (done_()) {
      stop_.request_stop();
      return;
    }
    const MonoTime end = env_.MonoNow() + duration;
    while (env_.MonoNow() < end && !stop.stop_requested()) {
      bool moved = false;
      for (const Given& given : std::vector<Given>(given_)) {
        if (std::find(given_.begin(), given_.end(), given) == given_.end()) continue;
        replica::Follower* const follower = given.follower;
        if (failures_.contains(follower)) continue;
        if (env_.MonoNow().time_since_epoch().count() >= worker_->DeadlineNs()) return;
        stepping_ = follower;
        auto outcome = follower->Step(stops_[follower].get_token());
        stepping_ = nullptr;
        if (!outcome) failures_.emplace(follower, outcome.error());
        moved |= outcome && *outcome == replica::Follower::Outcome::kMoved;
      }
      if (!moved && !env_.Sleep(std::min<nanoseconds>(std::chrono::seconds(2), duration), stop))
        return;
    }
  }

  Simulation& sim_;
  Env& env_;
  const std::function<bool()> done_;
  const std::function<int64_t()> pause_;
  int64_t before_look_ = 0;
  int64_t seen_pause_ = 0;
  bool trouble_ = false;
  replica::Worker* worker_ = nullptr;
  nanoseconds interval_{0};
  std::stop_source stop_;
  // By number too: a new one may reuse the address of one that is gone.
  struct Given {
    replica::Follower* follower;
    int64_t number;

    bool operator==(const Given&) const = default;
  };
  std::vector<Given> given_;
  int64_t numbers_ = 0;
  std::map<replica::Follower*, std::stop_source> stops_;
  replica::Follower* stepping_ = nullptr;
  bool is_looking_ = false;  // the worker, within a step
  std::map<replica::Follower*, Error> failures_;
};

}  // namespace muster::sim
