#pragma once

#include <algorithm>
#include <chrono>
#include <concepts>
#include <stop_token>

#include "core/backoff.h"
#include "muster/env.h"

namespace muster {

// Polls until the predicate holds, the timeout passes or a stop is requested. Pauses are jittered,
// so that concurrent waiters do not poll in step.
template <std::predicate Look>
void PollUntil(Look look, Env& env, const Backoff::Pauses& pauses,
               std::chrono::milliseconds timeout, std::stop_token stop) {
  const MonoTime end = env.MonoNow() + timeout;
  Backoff backoff(env, stop, pauses);
  while (!stop.stop_requested() && !look()) {
    const auto left = end - env.MonoNow();
    if (left <= left.zero()) return;
    env.Sleep(std::min<std::chrono::nanoseconds>(left, backoff.Next()), stop);
  }
}

}  // namespace muster
