#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>
#include <vector>

namespace muster {

using WallTime = std::chrono::sys_time<std::chrono::milliseconds>;
using MonoTime = std::chrono::time_point<std::chrono::steady_clock, std::chrono::nanoseconds>;

// Everything about the world that differs from run to run: time, waiting, chance and threads. Code
// that coordinates takes an Env instead of asking the system, so that the simulator can decide
// what it sees.
//
// Implementations are safe to use from any thread.
class Env {
 public:
  virtual ~Env() = default;

  // What the clock on the wall says. It may jump, and other machines' may differ: show it to
  // people, never judge a lease by it.
  virtual WallTime WallNow() = 0;

  // Time that only moves forward, meaningful within one process.
  virtual MonoTime MonoNow() = 0;

  // Waits for `duration`, or less when a stop is requested. True: the whole duration has passed.
  virtual bool Sleep(std::chrono::nanoseconds duration, std::stop_token stop) = 0;

  // 64 random bits.
  virtual uint64_t Random() = 0;

  // Runs all of `threads` at once, the first on the calling thread and each other on one of its
  // own, and returns when every one has returned. None may throw.
  virtual void RunAll(std::vector<std::function<void()>> threads);

  // A name nobody else has: 128 random bits in hexadecimal.
  std::string NewId();

  // A duration drawn evenly from [0, `bound`): spreads out those that would otherwise act at once.
  std::chrono::nanoseconds Jitter(std::chrono::nanoseconds bound);
};

// The real world. Lives as long as the program.
Env& RealEnv();

}  // namespace muster
