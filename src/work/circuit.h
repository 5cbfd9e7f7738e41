#pragma once

#include <map>
#include <mutex>
#include <stop_token>
#include <string>

#include "muster/env.h"
#include "muster/result.h"
#include "muster/store.h"

namespace muster::work {

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

  // Call afterwards: a try that found nothing to do does not count.
  void Settled();

 private:
  milliseconds Pause() const;

  Env& env_;
  const milliseconds first_pause_;
  std::mutex mutex_;
  int64_t successes_ = 0;
  int failures_ = 0;  // in a row
  bool trying_ = false;
  MonoTime since_{};
  MonoTime next_try_{};
  // For each failed item, how many successes of others there had been. Bounded: the oldest are
  // dropped.
  std::map<std::string, int64_t> failed_at_;
};

}  // namespace muster::work
