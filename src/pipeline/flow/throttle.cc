#include <algorithm>

#include "core/mutex.h"
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

struct Throttle::State {
  explicit State(Env& its_env) : env(its_env) {}

  Env& env;
  Mutex mutex;
  double docs_per_second GUARDED_BY(mutex) = 0;
  double bytes_per_second GUARDED_BY(mutex) = 0;
  int64_t settings GUARDED_BY(mutex) = 0;  // number of Set calls
  MonoTime free_at GUARDED_BY(mutex){};
};

Throttle::Throttle(Env& env) : state_(std::make_unique<State>(env)) {}

Throttle::~Throttle() = default;

void Throttle::Set(double docs_per_second, double bytes_per_second) {
  // Not under the lock: a simulated clock may switch threads.
  const MonoTime now = state_->env.MonoNow();
  const MutexLock lock(state_->mutex);
  state_->docs_per_second = docs_per_second;
  state_->bytes_per_second = bytes_per_second;
  state_->free_at = now;  // time reserved at the old rate is not charged at the new one
  ++state_->settings;
}

bool Throttle::Pass(int64_t docs, int64_t bytes, std::stop_token stop) {
  while (!stop.stop_requested()) {
    const MonoTime asked = state_->env.MonoNow();
    MonoTime turn;
    int64_t settings = 0;
    {
      const MutexLock lock(state_->mutex);
      settings = state_->settings;
      turn = std::max(state_->free_at, asked);
      state_->free_at = turn + std::max(TimeFor(docs, state_->docs_per_second),
                                        TimeFor(bytes, state_->bytes_per_second));
    }
    bool changed = false;
    for (MonoTime now = state_->env.MonoNow(); now < turn && !changed;
         now = state_->env.MonoNow()) {
      if (!state_->env.Sleep(std::min<nanoseconds>(turn - now, kLookUp), stop)) return false;
      const MutexLock lock(state_->mutex);
      changed = state_->settings != settings;
    }
    if (!changed) return true;
  }
  return false;
}

BatchLimits Throttle::Bounded(const BatchLimits& limits) const {
  const MutexLock lock(state_->mutex);
  return {.max_docs = InOneSecond(state_->docs_per_second, limits.max_docs),
          .max_bytes = InOneSecond(state_->bytes_per_second, limits.max_bytes)};
}

}  // namespace muster::pipeline
