#pragma once

#include <functional>
#include <string>
#include <thread>

#include "muster/env.h"

namespace muster {

// While it lives, reports what the caller waits for, once that takes a few seconds. A thread of its
// own calls `what` now and then (empty: nothing), and `say` with each new answer, and with an empty
// one at the end. Both, and `env`, must outlive it.
class WaitWatch {
 public:
  using What = std::function<std::string()>;
  using Say = std::function<void(const std::string& what)>;

  WaitWatch(What what, Say say, Env& env, std::chrono::milliseconds patience = kPatience);

  static constexpr std::chrono::milliseconds kPatience{3'000};

 private:
  void Watch(const std::stop_token& stop);

  const What what_;
  const Say say_;
  Env& env_;
  const std::chrono::milliseconds patience_;
  std::jthread thread_;  // last: uses the other members
};

}  // namespace muster
