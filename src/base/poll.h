#pragma once

#include <algorithm>
#include <chrono>
#include <concepts>
#include <stop_token>

#include "muster/env.h"

namespace muster {

// How often something is looked at: at first after `first`, then less and less often.
struct PollPauses {
  std::chrono::milliseconds first;
  std::chrono::milliseconds slowest;
};

// Looks until there is something to see, the time is over or a stop is requested. Pauses are drawn
// at random, so that those who wait for the same thing do not look at the same moment.
template <std::predicate Look>
void PollUntil(Look look, Env& env, const PollPauses& pauses, std::chrono::milliseconds timeout,
               std::stop_token stop) {
  const MonoTime end = env.MonoNow() + timeout;
  std::chrono::milliseconds pause = pauses.first;
  while (!stop.stop_requested() && !look()) {
    const auto left = end - env.MonoNow();
    if (left <= left.zero()) return;
    env.Sleep(std::min<std::chrono::nanoseconds>(left, pause + env.Jitter(pause)), stop);
    pause = std::min(pause * 2, pauses.slowest);
  }
}

}  // namespace muster
