#pragma once

#include <chrono>
#include <optional>

#include "core/mutex.h"
#include "muster/env.h"
#include "muster/result.h"
#include "muster/store.h"

namespace muster::store {

using std::chrono::milliseconds;

// The clock of a server that does not stamp writes itself: it reports its time on request, to the
// second or so, and the response takes time. So the time is known with a bounded error, which
// becomes part of every lease: no worker takes a record before it is due, whichever of two has the
// worse clock.
//
// Our wall clock plays no role, only elapsed time. Thread-safe.
class ServerClock {
 public:
  // Less accurate times are not returned. A response may take twice as long.
  static constexpr milliseconds kMaxError{6'000};
  // Larger contradictions mean that the clock was set.
  static constexpr milliseconds kJump{2'000};

  struct Times {
    WallTime due;    // as stored
    WallTime ready;  // what others go by; see Horizon
  };

  // The server's time is `now` ± `error`.
  struct Reading {
    WallTime now;
    milliseconds error{0};

    // A record ready by then is due, despite the errors of its writer and reader.
    WallTime Horizon() const { return now - error; }

    // For a record due after `delay`.
    Times After(milliseconds delay) const;
    // The same for any due time. What is due at once is ready for all, whatever their errors.
    Times At(const Due& due) const;
  };

  // The server showed `shown` between two Env::MonoNow times, on a clock that ticks every `tick`: a
  // second for a Date header. Every response narrows the error, until one contradicts the earlier
  // ones: then the server's clock was set, or another server responded.
  void Observe(MonoTime asked, MonoTime answered, WallTime shown, milliseconds tick);

  // Whether to ask the server again: it never was, or clocks may have drifted since.
  bool IsStale(MonoTime now) const;

  // Monotonic, unless the server's clock was set back. kUnavailable: less accurate than kMaxError.
  Result<Reading> Read(MonoTime now);

 private:
  using Offset = std::chrono::nanoseconds;  // the server's clock minus ours

  struct Bounds {
    Offset least;
    Offset most;
  };

  Bounds At(MonoTime now) const REQUIRES(mutex_);

  mutable Mutex mutex_;
  std::optional<Bounds> bounds_ GUARDED_BY(mutex_);  // as of at_
  MonoTime at_ GUARDED_BY(mutex_){};
  // How far responses were apart: servers of one cluster differ.
  Offset disagreement_ GUARDED_BY(mutex_){0};
  std::optional<WallTime> last_ GUARDED_BY(mutex_);
};

}  // namespace muster::store
