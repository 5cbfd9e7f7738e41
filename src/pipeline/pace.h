#pragma once

#include <condition_variable>
#include <mutex>

#include "muster/env.h"
#include "muster/pipeline.h"

namespace muster {

// How many requests may be under way at once, found out by trying: one more for every round that
// went well, half as many when the server says that it is too much. Thread-safe.
class Pace {
 public:
  explicit Pace(Env& env) : env_(env) {}

  // Waits for a turn. False: patience is at its end. Each turn taken ends with one of the three.
  bool Begin(const Patience& patience);
  void Accepted();    // the server took it
  void Overloaded();  // the server is overloaded
  void Failed();      // for a reason that says nothing about load

  int limit() const;

 private:
  void End();

  Env& env_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  double limit_ = 64;
  int under_way_ = 0;
};

}  // namespace muster
