#pragma once

#include <stop_token>

namespace muster {

// Cancels network waits however deep below the caller: HTTP requests, PostgreSQL and locked SQLite
// files return kCancelled within about a second, even where no stop token reaches them.

// While it lives, a stop interrupts this thread's waits. For work that can be cut off at any point
// without leaving anything behind: opening, preparing, comparing. Scopes may nest.
class InterruptScope {
 public:
  explicit InterruptScope(std::stop_token stop);
  ~InterruptScope();
  InterruptScope(const InterruptScope&) = delete;
  InterruptScope& operator=(const InterruptScope&) = delete;

 private:
  std::stop_token before_;
};

// From now on interrupts the waits of all threads: the hand-over time is up.
void InterruptAll();

// Whether this thread should stop waiting. Cheap.
bool Interrupted();

// Replaces this thread's interrupt and returns the previous one: for running several threads of
// control on one.
std::stop_token ExchangeInterrupt(std::stop_token stop);

}  // namespace muster
