#pragma once

#include "core/env_wrapper.h"

namespace muster::testing {

// An Env whose pauses are a thousandth as long, so that a call that takes long is noticed soon.
// Clocks and random numbers are real.
class ShortPauses final : public EnvWrapper {
 public:
  ShortPauses() : EnvWrapper(RealEnv()) {}
  bool Sleep(std::chrono::nanoseconds duration, std::stop_token stop) override {
    return inner().Sleep(duration / 1000, std::move(stop));
  }
};

}  // namespace muster::testing
