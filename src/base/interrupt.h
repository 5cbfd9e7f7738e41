#pragma once

#include <stop_token>

namespace muster {

// Ends waits for the network, however deep below a caller that is to stop: HTTP requests,
// PostgreSQL and locked SQLite files answer kCancelled within about a second, also where no stop
// token reaches them.

// While it lives, a stop interrupts what this thread waits for. For work that leaves nothing behind
// when it is cut off at any point: opening, preparing, comparing. Scopes may nest.
class InterruptScope {
 public:
  explicit InterruptScope(std::stop_token stop);
  ~InterruptScope();
  InterruptScope(const InterruptScope&) = delete;
  InterruptScope& operator=(const InterruptScope&) = delete;

 private:
  std::stop_token before_;
};

// From now on interrupts what any thread of this process waits for: the time to hand over is up.
void InterruptAll();

// Whether this thread should wait no longer. Cheap.
bool Interrupted();

// Replaces what interrupts this thread, and returns what did: for what runs several threads of
// control on one.
std::stop_token ExchangeInterrupt(std::stop_token stop);

}  // namespace muster
