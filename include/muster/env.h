#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "muster/result.h"

namespace muster {

using std::chrono::milliseconds;

using WallTime = std::chrono::sys_time<milliseconds>;
using MonoTime = std::chrono::time_point<std::chrono::steady_clock, std::chrono::nanoseconds>;

// Everything nondeterministic: time, waiting, randomness and threads. Coordination code takes an
// Env instead of calling the system, so that the simulator can control it.
//
// Implementations are thread-safe.
class MUSTER_EXPORT Env {
 public:
  virtual ~Env() = default;

  // Wall-clock time. It may jump, and other machines' may differ: for display only, never for
  // leases.
  virtual WallTime WallNow() = 0;

  // Monotonic time, meaningful within one process.
  virtual MonoTime MonoNow() = 0;

  // Waits for `duration`, or less when a stop is requested. True: the whole duration has passed.
  virtual bool Sleep(std::chrono::nanoseconds duration, std::stop_token stop) = 0;

  // 64 random bits.
  virtual uint64_t Random() = 0;

  // Runs all `threads` concurrently, the first on the calling thread and each other on its own, and
  // returns when all have returned. None may throw.
  virtual void RunAll(std::vector<std::function<void()>> threads);

  // A unique name: 128 random bits in hex.
  std::string NewId();

  // A uniformly random duration in [0, `bound`), to spread out concurrent actors.
  std::chrono::nanoseconds Jitter(std::chrono::nanoseconds bound);
};

// The real world. Lives as long as the program.
MUSTER_EXPORT Env& RealEnv();

}  // namespace muster
