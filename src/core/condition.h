#pragma once

#include <chrono>
#include <list>
#include <mutex>
#include <stop_token>

#include "muster/env.h"

namespace muster {

// A condition variable that waits through an Env, so that the simulator can switch threads. Guarded
// by one mutex, which must not be held across any other Env call.
class Condition {
 public:
  explicit Condition(Env& env) : env_(env) {}
  Condition(const Condition&) = delete;
  Condition& operator=(const Condition&) = delete;

  // Releases `lock` while waiting: until notified, `timeout`, or a stop request. May wake up
  // spuriously.
  void Wait(std::unique_lock<std::mutex>& lock, std::chrono::nanoseconds timeout,
            const std::stop_token& stop = {});

  // The caller holds the mutex.
  void NotifyOne();
  void NotifyAll();

 private:
  Env& env_;
  std::list<std::stop_source> waiting_;  // longest waiting first
};

// A mutex that may be held across Env and service calls.
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
