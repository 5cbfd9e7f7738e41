#pragma once

#include <chrono>
#include <list>
#include <mutex>
#include <stop_token>

#include "muster/env.h"

namespace muster {

// A condition variable that waits through an Env, so that the simulator can switch threads there.
// Guarded by one mutex, which must not be held across any other call of the Env.
class Condition {
 public:
  explicit Condition(Env& env) : env_(env) {}
  Condition(const Condition&) = delete;
  Condition& operator=(const Condition&) = delete;

  // Releases `lock` while it waits: until it is notified, `timeout` has passed, or a stop is
  // requested. May return early for no reason.
  void Wait(std::unique_lock<std::mutex>& lock, std::chrono::nanoseconds timeout,
            const std::stop_token& stop = {});

  // The caller holds the mutex.
  void NotifyOne();
  void NotifyAll();

 private:
  Env& env_;
  std::list<std::stop_source> waiting_;  // the longest first
};

// A mutex that may be held across calls of the Env and of services.
class LongLock {
 public:
  explicit LongLock(Env& env) : released_(env) {}

  void lock();
  void unlock();

 private:
  std::mutex mutex_;
  Condition released_;
  bool held_ = false;
};

}  // namespace muster
