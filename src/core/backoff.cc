#include "core/backoff.h"

#include <algorithm>

#include "core/planted_bug.h"

namespace muster {

std::chrono::milliseconds Backoff::Pauses::After(int failures) const {
  constexpr int kMostDoublings = 60;
  std::chrono::milliseconds pause = Next({});
  for (int i = 1; i < std::min(failures, kMostDoublings) && pause < longest; ++i) {
    pause = Next(pause);
  }
  return pause;
}

std::chrono::milliseconds Backoff::Pauses::Next(std::chrono::milliseconds pause) const {
  // Halved first: doubled, a long one might overflow.
  return pause > longest / 2 ? longest : std::min(std::max(first, pause * 2), longest);
}

std::chrono::nanoseconds Backoff::Next() {
  const std::chrono::milliseconds pause = pauses_.After(++failures_);
  return pause + env_.Jitter(pause);
}

bool Backoff::PauseBefore(MonoTime deadline) {
  const std::chrono::nanoseconds pause = Next();
  if (!PLANTED_BUG(retries_outlive_the_lease) && env_.MonoNow() + pause >= deadline) return false;
  return env_.Sleep(pause, stop_);
}

}  // namespace muster
