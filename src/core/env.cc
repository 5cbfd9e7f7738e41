#include "muster/env.h"

#include <array>
#include <condition_variable>
#include <random>
#include <thread>

#include "core/mono_clock.h"
#include "core/mutex.h"
#include "core/planted_bug.h"

namespace muster {
namespace {

class SystemEnv final : public Env {
 public:
  WallTime WallNow() override {
    return std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now());
  }

  MonoTime MonoNow() override {
    timespec now{};
    clock_gettime(MonoClock(), &now);
    return MonoTime(std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec));
  }

  bool Sleep(std::chrono::nanoseconds duration, std::stop_token stop) override {
    Mutex mutex;
    std::condition_variable_any wake;
    MutexLock lock(mutex);
    wake.wait_for(lock, stop, duration, [] { return false; });
    return !stop.stop_requested();
  }

  uint64_t Random() override {
    thread_local std::mt19937_64 generator = [] {
      std::random_device device;
      std::seed_seq seed{device(), device(), device(), device(), device(), device()};
      return std::mt19937_64(seed);
    }();
    return generator();
  }
};

}  // namespace

clockid_t MonoClock() {
  return PLANTED_BUG(time_stops_while_suspended) ? CLOCK_MONOTONIC : CLOCK_BOOTTIME;
}

void Env::RunAll(std::vector<std::function<void()>> threads) {
  if (threads.empty()) return;
  std::vector<std::jthread> others;
  for (size_t i = 1; i < threads.size(); ++i) others.emplace_back(std::move(threads[i]));
  threads.front()();
}

std::string Env::NewId() {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::array<uint64_t, 2> bits{Random(), Random()};
  std::string id;
  id.reserve(32);
  for (uint64_t word : bits) {
    for (int shift = 60; shift >= 0; shift -= 4) id += kDigits[(word >> shift) & 0xf];
  }
  return id;
}

std::chrono::nanoseconds Env::Jitter(std::chrono::nanoseconds bound) {
  if (bound.count() <= 0) return std::chrono::nanoseconds{0};
  return std::chrono::nanoseconds(
      static_cast<int64_t>(Random() % static_cast<uint64_t>(bound.count())));
}

Env& RealEnv() {
  static SystemEnv env;
  return env;
}

}  // namespace muster
