#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <stop_token>
#include <string>

#include "core/condition.h"
#include "core/mutex.h"
#include "muster/store.h"

namespace muster::states {

// Signals between the threads of one process that drive executions: idle threads need not poll the
// store, and work that one thread leaves is picked up by another at once. All of it is a hint: a
// thread that misses a signal finds the work by polling. Thread-safe.
class DriverSignals {
 public:
  explicit DriverSignals(Env& env) : changed_(env) {}

  // How many signals there were. Read it before looking for work; pass it to Wait if none is found.
  uint64_t count() const EXCLUDES(mutex_);

  // Returns on a signal after the first `seen`, when the store may have changed, after `timeout`,
  // or when a stop is requested. One thread at a time watches the store for all.
  void Wait(store::Store& store, uint64_t seen, milliseconds timeout, const std::stop_token& stop)
      EXCLUDES(mutex_);

  // `records` have become due that the caller does not claim itself.
  void SignalDue(size_t records) EXCLUDES(mutex_);

  // Every thread looks again.
  void SignalAll() EXCLUDES(mutex_);

  // A branch of `parent` has ended. Add it before reading the parent's record; take it after
  // writing and releasing that record. So one of the two threads always sees the other.
  void AddEndedBranch(const std::string& parent) EXCLUDES(mutex_);
  // Whether there was one that had not been taken.
  bool TakeEndedBranch(const std::string& parent) EXCLUDES(mutex_);

 private:
  mutable Mutex mutex_;
  muster::Condition changed_;
  uint64_t count_ GUARDED_BY(mutex_) = 0;
  size_t waiting_ GUARDED_BY(mutex_) = 0;  // besides the thread that watches the store
  bool watched_ GUARDED_BY(mutex_) = false;
  std::stop_source watch_ GUARDED_BY(mutex_);
  std::set<std::string> ended_ GUARDED_BY(mutex_);  // parents
};

}  // namespace muster::states
