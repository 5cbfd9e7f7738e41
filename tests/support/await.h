#pragma once

#include <algorithm>
#include <chrono>
#include <thread>

namespace muster::testing {

// Waits until the condition holds. False if it does not within `patience`, which is long enough for
// a busy machine: a test may fail because of the timeout, but never pass because of it.
template <class Condition>
bool Await(Condition condition, std::chrono::milliseconds patience = std::chrono::minutes(1)) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  for (auto pause = std::chrono::milliseconds(1); !condition();
       pause = std::min(pause * 2, std::chrono::milliseconds(50))) {
    if (std::chrono::steady_clock::now() > deadline) return condition();
    std::this_thread::sleep_for(pause);
  }
  return true;
}

}  // namespace muster::testing
