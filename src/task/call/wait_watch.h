#pragma once

#include <functional>
#include <string>
#include <thread>

#include "task/data/load_fence.h"

namespace muster::task {

// Says what is waited for while this exists, if that is longer than a few seconds: `what` is asked
// now and then, on a thread of its own (empty: for nothing), and `say` gets each answer that is
// new, and an empty one at the end. Both must outlive it.
class WaitWatch {
 public:
  using What = std::function<std::string()>;

  WaitWatch(What what, OnWait say, std::chrono::milliseconds patience = kPatience);

  static constexpr std::chrono::milliseconds kPatience{3'000};

 private:
  void Watch(const std::stop_token& stop);

  const What what_;
  const OnWait say_;
  const std::chrono::milliseconds patience_;
  std::jthread thread_;  // the last to be made, the first to end
};

}  // namespace muster::task
