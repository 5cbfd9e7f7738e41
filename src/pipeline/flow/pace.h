#pragma once

#include "core/condition.h"
#include "core/mutex.h"
#include "muster/env.h"
#include "muster/pipeline.h"

namespace muster::pipeline {

// Adaptive concurrency limit: additive increase after each full round of successes, halved when the
// server is overloaded. Thread-safe.
class Pace {
 public:
  explicit Pace(Env& env) : env_(env) {}

  // Waits for a slot. False: patience ran out. Each slot ends with one of the three below.
  bool Begin(const Patience& patience);
  void Accepted();
  void Overloaded();
  void Failed();  // for a reason unrelated to load

  int limit() const;

 private:
  void End() REQUIRES(mutex_);

  Env& env_;
  mutable Mutex mutex_;
  Condition changed_{env_};
  double limit_ GUARDED_BY(mutex_) = 64;
  int under_way_ GUARDED_BY(mutex_) = 0;
};

}  // namespace muster::pipeline
