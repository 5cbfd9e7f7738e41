#include <algorithm>

#include "muster/migrate.h"

namespace muster::pipeline {
namespace {

using std::chrono::duration;
using std::chrono::duration_cast;
using std::chrono::nanoseconds;

// How often waiters check for changed limits.
constexpr auto kLookUp = std::chrono::milliseconds(200);

// Longer than any migration; beyond it nanoseconds would overflow.
constexpr double kLongestSeconds = 1e6;

nanoseconds TimeFor(int64_t amount, double per_second) {
  if (per_second <= 0) return nanoseconds(0);
  const double seconds = std::min(static_cast<double>(amount) / per_second, kLongestSeconds);
  return duration_cast<nanoseconds>(duration<double>(seconds));
}

size_t InOneSecond(double per_second, size_t limit) {
  if (per_second <= 0 || per_second >= static_cast<double>(limit)) return limit;
  return std::max<size_t>(static_cast<size_t>(per_second), 1);
}

}  // namespace

void Throttle::Set(double docs_per_second, double bytes_per_second) {
  const MonoTime now = env_.MonoNow();  // not under the lock: a simulated clock may switch threads
  std::lock_guard lock(mutex_);
  docs_per_second_ = docs_per_second;
  bytes_per_second_ = bytes_per_second;
  free_at_ = now;  // time reserved at the old rate is not charged at the new one
  ++settings_;
}

bool Throttle::Pass(int64_t docs, int64_t bytes, std::stop_token stop) {
  while (!stop.stop_requested()) {
    const MonoTime asked = env_.MonoNow();
    MonoTime turn;
    int64_t settings = 0;
    {
      std::lock_guard lock(mutex_);
      settings = settings_;
      turn = std::max(free_at_, asked);
      free_at_ =
          turn + std::max(TimeFor(docs, docs_per_second_), TimeFor(bytes, bytes_per_second_));
    }
    bool changed = false;
    for (MonoTime now = env_.MonoNow(); now < turn && !changed; now = env_.MonoNow()) {
      if (!env_.Sleep(std::min<nanoseconds>(turn - now, kLookUp), stop)) return false;
      std::lock_guard lock(mutex_);
      changed = settings_ != settings;
    }
    if (!changed) return true;
  }
  return false;
}

BatchLimits Throttle::Bounded(const BatchLimits& limits) const {
  std::lock_guard lock(mutex_);
  return {.max_docs = InOneSecond(docs_per_second_, limits.max_docs),
          .max_bytes = InOneSecond(bytes_per_second_, limits.max_bytes)};
}

}  // namespace muster::pipeline
