#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "muster/env.h"

namespace muster {

// Forwards every call to another Env, which must outlive it. Derive and override what differs.
class EnvWrapper : public Env {
 public:
  explicit EnvWrapper(Env& inner) : inner_(inner) {}

  WallTime WallNow() override { return inner_.WallNow(); }
  MonoTime MonoNow() override { return inner_.MonoNow(); }
  bool Sleep(std::chrono::nanoseconds duration, std::stop_token stop) override {
    return inner_.Sleep(duration, std::move(stop));
  }
  uint64_t Random() override { return inner_.Random(); }
  void RunAll(std::vector<std::function<void()>> threads) override {
    inner_.RunAll(std::move(threads));
  }

 protected:
  Env& inner() const { return inner_; }

 private:
  Env& inner_;
};

}  // namespace muster
