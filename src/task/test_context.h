#pragma once

#include <atomic>
#include <stop_token>

#include "muster/states.h"

namespace muster::task {

// The context of an executor under test: the real Env, and a stop requested by the test.
class TestContext : public states::TaskContext {
 public:
  Env& env() override { return RealEnv(); }
  bool KeepAlive() override {
    ++beats;
    return !stopping.stop_requested();
  }
  std::stop_token stop() const override { return stopping.get_token(); }

  std::stop_source stopping;
  std::atomic<int> beats = 0;
};

}  // namespace muster::task
