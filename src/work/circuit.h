#pragma once

#include <map>
#include <stop_token>
#include <string>

#include "core/mutex.h"
#include "muster/env.h"
#include "muster/result.h"
#include "muster/store.h"

namespace muster::work {

// Whether an error is about the source or the sink as a whole, not about an item's data: it is
// away, full or read-only, or refuses this worker. Waiting for it counts as no attempt.
inline bool IsOutage(const Error& error) {
  return IsTransient(error.code) || error.code == Code::kPermission;
}

// Circuit breaker: whether a worker, with all its slots, makes any progress. What blocks all its
// items is the fault of the source, the sink or the worker, not of the items. Thread-safe.
class Circuit {
 public:
  // The pause doubles with each further failure.
  Circuit(Env& env, milliseconds first_pause) : env_(env), first_pause_(first_pause) {}

  // Part of the item is durably in the sink.
  void Succeeded(const std::string& item);

  // An item failed for a reason that need not be its data. True: others have succeeded since its
  // last failure, so the item is to blame after all.
  bool Failed(const std::string& item, const Error& why);

  // Call before acquiring an item: while nothing succeeds it backs off, and lets one slot at a time
  // try. False: stopped.
  bool Await(const std::stop_token& stop);

  // What it waits for, and the last error; empty: items succeed.
  std::string WaitsFor();

  // Call afterwards: a try that found nothing to do does not count.
  void Settled();

 private:
  milliseconds Pause() const REQUIRES(mutex_);

  Env& env_;
  const milliseconds first_pause_;
  Mutex mutex_;
  int64_t successes_ GUARDED_BY(mutex_) = 0;
  int failures_ GUARDED_BY(mutex_) = 0;  // in a row
  std::string waits_for_ GUARDED_BY(mutex_);
  bool trying_ GUARDED_BY(mutex_) = false;
  MonoTime since_ GUARDED_BY(mutex_){};
  MonoTime next_try_ GUARDED_BY(mutex_){};
  // For each failed item, how many successes of others there had been. Bounded: the oldest are
  // dropped.
  std::map<std::string, int64_t> failed_at_ GUARDED_BY(mutex_);
};

}  // namespace muster::work
