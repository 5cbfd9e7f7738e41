#pragma once

#include <atomic>
#include <chrono>

#include "core/env_wrapper.h"

namespace muster::testing {

// A machine with a wall clock that is wrong, or is set.
class SkewedEnv final : public EnvWrapper {
 public:
  explicit SkewedEnv(std::chrono::milliseconds skew = {}) : EnvWrapper(RealEnv()), skew_(skew) {}
  WallTime WallNow() override { return inner().WallNow() + skew_.load(); }
  void SetBack(std::chrono::milliseconds by) { skew_ = skew_.load() - by; }

 private:
  std::atomic<std::chrono::milliseconds> skew_;
};

}  // namespace muster::testing
