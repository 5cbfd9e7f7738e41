#include "core/condition.h"

namespace muster {
namespace {

// Only a safety net: every release notifies.
constexpr std::chrono::hours kLongLook{1};

}  // namespace

void Condition::Wait(MutexLock& lock, std::chrono::nanoseconds timeout,
                     const std::stop_token& stop) {
  const auto mine = waiting_.emplace(waiting_.end());
  std::stop_source wake = *mine;
  lock.unlock();
  // Also if the simulated process ends while it sleeps.
  struct Leaving {
    MutexLock& lock;
    std::list<std::stop_source>& waiting;
    const std::stop_source& wake;
    ~Leaving() {
      lock.lock();
      waiting.remove(wake);
    }
  } const leaving{lock, waiting_, wake};
  const std::stop_callback stopped(stop, [&wake] { wake.request_stop(); });
  env_.Sleep(timeout, wake.get_token());
}

void Condition::NotifyOne() {
  if (waiting_.empty()) return;
  std::stop_source first = waiting_.front();
  waiting_.pop_front();
  first.request_stop();
}

void Condition::NotifyAll() {
  while (!waiting_.empty()) NotifyOne();
}

void LongLock::lock() {
  MutexLock lock(mutex_);
  while (held_) released_.Wait(lock, kLongLook);
  held_ = true;
}

void LongLock::unlock() {
  const MutexLock lock(mutex_);
  held_ = false;
  released_.NotifyOne();
}

}  // namespace muster
