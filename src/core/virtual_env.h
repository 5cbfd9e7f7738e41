#pragma once

#include <atomic>

#include "muster/env.h"

namespace muster {

// An Env in which waiting takes no time: Sleep advances the clocks. Randomness is the same in every
// run.
class VirtualEnv : public Env {
 public:
  explicit VirtualEnv(WallTime start = WallTime(std::chrono::hours(1)), uint64_t seed = 1)
      : start_(start), state_(seed) {}

  WallTime WallNow() override {
    return start_ + std::chrono::duration_cast<std::chrono::milliseconds>(passed());
  }
  MonoTime MonoNow() override { return MonoTime(std::chrono::hours(1) + passed()); }
  bool Sleep(std::chrono::nanoseconds duration, std::stop_token stop) override {
    if (stop.stop_requested()) return false;
    Pass(duration);
    return true;
  }
  uint64_t Random() override {
    uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }

  void Pass(std::chrono::nanoseconds duration) {
    if (duration.count() > 0) passed_ns_ += duration.count();
  }

 private:
  std::chrono::nanoseconds passed() const { return std::chrono::nanoseconds(passed_ns_); }

  const WallTime start_;
  std::atomic<int64_t> passed_ns_ = 0;
  std::atomic<uint64_t> state_;
};

}  // namespace muster
