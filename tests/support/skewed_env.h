#pragma once

#include "core/env_wrapper.h"

namespace muster::testing {

// A machine with a wrong wall clock.
class SkewedEnv final : public EnvWrapper {
 public:
  explicit SkewedEnv(std::chrono::hours skew) : EnvWrapper(RealEnv()), skew_(skew) {}
  WallTime WallNow() override { return inner().WallNow() + skew_; }

 private:
  const std::chrono::hours skew_;
};

}  // namespace muster::testing
