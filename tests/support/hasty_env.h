#pragma once

#include <atomic>
#include <chrono>
#include <vector>

#include "core/env_wrapper.h"
#include "core/mutex.h"

namespace muster::testing {

// An Env whose pauses take no time. Clocks and random numbers are real.
class HastyEnv final : public EnvWrapper {
 public:
  HastyEnv() : EnvWrapper(RealEnv()) {}
  MonoTime MonoNow() override { return inner().MonoNow() + slept_.load(); }
  bool Sleep(std::chrono::nanoseconds duration, std::stop_token stop) override {
    const MutexLock lock(mutex_);
    slept_ = slept_.load() + duration;
    pauses.push_back(duration);
    return !stop.stop_requested();
  }

  std::vector<std::chrono::nanoseconds> pauses;  // all of them, once no thread sleeps any more

 private:
  Mutex mutex_;  // of `pauses`, which is public for tests to read at the end
  std::atomic<std::chrono::nanoseconds> slept_{};
};

}  // namespace muster::testing
