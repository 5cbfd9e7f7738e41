#include "core/backoff.h"

#include <algorithm>

#include "core/planted_bug.h"

namespace muster {

std::chrono::nanoseconds Backoff::Next() {
  const std::chrono::nanoseconds pause = pause_ + env_.Jitter(pause_);
  pause_ = std::min(pause_ * 2, pauses_.longest);
  return pause;
}

bool Backoff::PauseBefore(MonoTime deadline) {
  const std::chrono::nanoseconds pause = Next();
  if (!PLANTED_BUG(retries_outlive_the_lease) && env_.MonoNow() + pause >= deadline) return false;
  return env_.Sleep(pause, stop_);
}

}  // namespace muster
