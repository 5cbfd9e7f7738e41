#pragma once

#include <atomic>
#include <stop_token>

#include "muster/task.h"

namespace muster::task {

// What an executor gets in tests: the real world, and a stop that the test requests.
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
