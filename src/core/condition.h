#pragma once

#include <chrono>
#include <list>
#include <stop_token>

#include "core/mutex.h"
#include "muster/env.h"

namespace muster {

// A condition variable that waits through an Env, so that the simulator can switch threads. Used
// with one mutex, which must not be held across any other Env call.
class Condition {
 public:
  explicit Condition(Env& env) : env_(env) {}
  Condition(const Condition&) = delete;
  Condition& operator=(const Condition&) = delete;

  // Releases `lock` while waiting: until notified, `timeout`, or a stop request. May wake up
  // spuriously.
  // Not analysed: clang cannot follow a lock that is passed by reference.
  void Wait(MutexLock& lock, std::chrono::nanoseconds timeout,
            const std::stop_token& stop = {}) NO_THREAD_SAFETY_ANALYSIS;

  // The same until `done`, which is called with the mutex held. False: `timeout` or a stop request
  // came first.
  template <class Done>
  bool WaitFor(MutexLock& lock, std::chrono::nanoseconds timeout, const std::stop_token& stop,
               Done done) NO_THREAD_SAFETY_ANALYSIS {
    const MonoTime end = env_.MonoNow() + timeout;
    while (!done()) {
      const std::chrono::nanoseconds left = end - env_.MonoNow();
      if (left.count() <= 0 || stop.stop_requested()) return false;
      Wait(lock, left, stop);
    }
    return true;
  }

  // The caller holds the mutex.
  void NotifyOne();
  void NotifyAll();

 private:
  Env& env_;
  std::list<std::stop_source> waiting_;  // longest waiting first
};

// A mutex that may be held across Env and service calls.
class CAPABILITY("mutex") LongLock {
 public:
  explicit LongLock(Env& env) : released_(env) {}

  void lock() ACQUIRE();
  void unlock() RELEASE();

 private:
  Mutex mutex_;
  Condition released_ GUARDED_BY(mutex_);
  bool held_ GUARDED_BY(mutex_) = false;
};

// Holds a LongLock until the end of its scope.
class SCOPED_CAPABILITY LongLockGuard {
 public:
  explicit LongLockGuard(LongLock& lock) ACQUIRE(lock) : lock_(lock) { lock_.lock(); }
  ~LongLockGuard() RELEASE() { lock_.unlock(); }
  LongLockGuard(const LongLockGuard&) = delete;
  LongLockGuard& operator=(const LongLockGuard&) = delete;

 private:
  LongLock& lock_;
};

}  // namespace muster
