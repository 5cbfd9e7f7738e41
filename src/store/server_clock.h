#pragma once

#include <chrono>
#include <mutex>
#include <optional>

#include "muster/env.h"
#include "muster/result.h"
#include "muster/store.h"

namespace muster {

using std::chrono::milliseconds;

// The clock of a server that takes no part in what is written: it says what time it is when asked,
// to the second or so, and the answer travels. So its time is known with an error, which is bounded
// and becomes part of every lease: nobody takes a record before it is due, whichever of two workers
// has the clock that is off by more.
//
// Our own clock on the wall plays no role, only that time passes. Thread-safe.
class ServerClock {
 public:
  // A time that is known less well is not given out. An answer may take twice as long.
  static constexpr milliseconds kMaxError{6'000};
  // Answers that contradict each other by more mean that the clock was set.
  static constexpr milliseconds kJump{2'000};

  struct Times {
    WallTime due;    // what a record says
    WallTime ready;  // what others judge by; see Horizon
  };

  // The server's clock shows `now`, give or take `error`.
  struct Reading {
    WallTime now;
    milliseconds error{0};

    // What is ready by then is due, whatever the errors of the two who wrote and read it.
    WallTime Horizon() const { return now - error; }

    // For a record that is due after `delay`. Without a delay it is ready for everybody at once;
    // that is no lease that could be taken too early.
    Times After(milliseconds delay) const;
    // The same for any due time that is one.
    Times At(const Due& due) const;
  };

  // The server showed `shown` between two moments of Env::MonoNow, on a clock that ticks every
  // `tick`: a second for a Date header. Every answer makes the time known better, until it
  // contradicts the ones before: then the server's clock was set, or another server answered.
  void Observe(MonoTime asked, MonoTime answered, WallTime shown, milliseconds tick);

  // Whether the server should be asked again: it never was, or so long ago that clocks may have
  // drifted apart.
  bool IsStale(MonoTime now) const;

  // Never goes back, unless the server's clock was set back. kUnavailable: not known to kMaxError.
  Result<Reading> Read(MonoTime now);

 private:
  using Offset = std::chrono::nanoseconds;  // the server's clock - ours

  struct Bounds {
    Offset least;
    Offset most;
  };

  Bounds At(MonoTime now) const;

  mutable std::mutex mutex_;
  std::optional<Bounds> bounds_;  // as of at_
  MonoTime at_{};
  Offset disagreement_{0};  // how far answers were apart: the servers of one cluster differ
  std::optional<WallTime> last_;
};

}  // namespace muster
