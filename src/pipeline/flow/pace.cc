#include "pipeline/flow/pace.h"

#include <algorithm>
#include <chrono>

#include "core/mutex.h"

namespace muster::pipeline {
namespace {

constexpr double kMost = 64;
constexpr double kLeast = 1;
// A deadline may be far away.
constexpr std::chrono::hours kLook{1};

}  // namespace

bool Pace::Begin(const Patience& patience) {
  MutexLock lock(mutex_);
  while (under_way_ >= static_cast<int>(limit_)) {
    const MonoTime now = env_.MonoNow();
    if (patience.stop.stop_requested() || now >= patience.deadline) return false;
    changed_.Wait(lock, std::min<std::chrono::nanoseconds>(kLook, patience.deadline - now),
                  patience.stop);
  }
  ++under_way_;
  return true;
}

void Pace::Accepted() {
  const MutexLock lock(mutex_);
  limit_ = std::min(limit_ + 1 / limit_, kMost);
  End();
}

void Pace::Overloaded() {
  const MutexLock lock(mutex_);
  // Start from the actual concurrency, so that halving takes effect at once.
  limit_ = std::max(std::min(limit_, static_cast<double>(under_way_)) / 2, kLeast);
  End();
}

void Pace::Failed() {
  const MutexLock lock(mutex_);
  End();
}

int Pace::limit() const {
  const MutexLock lock(mutex_);
  return static_cast<int>(limit_);
}

void Pace::End() {
  --under_way_;
  changed_.NotifyAll();
}

}  // namespace muster::pipeline
