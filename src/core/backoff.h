#pragma once

#include <chrono>
#include <stop_token>
#include <utility>

#include "muster/env.h"
#include "muster/result.h"

namespace muster {

// Pauses that double, with jitter, so that clients that failed together don't retry together.
// Used by one thread.
class Backoff {
 public:
  struct Pauses {
    std::chrono::milliseconds first{20};
    std::chrono::milliseconds longest{2'000};

    // The nominal pause after this many failures in a row. For callers that count them themselves,
    // in a record, say.
    std::chrono::milliseconds After(int failures) const;

    // The nominal pause that follows one of this length; the first follows none, 0. For callers
    // that keep the pause itself.
    std::chrono::milliseconds Next(std::chrono::milliseconds pause) const;
  };

  explicit Backoff(Env& env, std::stop_token stop = {}) : Backoff(env, std::move(stop), Pauses{}) {}
  Backoff(Env& env, std::stop_token stop, const Pauses& pauses)
      : env_(env), stop_(std::move(stop)), pauses_(pauses) {}

  // The next pause, between once and twice its nominal length. For callers that sleep themselves.
  std::chrono::nanoseconds Next();

  // False: a stop was requested.
  bool Pause() { return env_.Sleep(Next(), stop_); }

  // False: a stop was requested, or the pause would not end before `deadline`; then it did not
  // pause.
  bool PauseBefore(MonoTime deadline);

  // Progress was made: the next pause is the first one again.
  void Reset() { failures_ = 0; }

 private:
  Env& env_;
  std::stop_token stop_;
  const Pauses pauses_;
  int failures_ = 0;
};

// Repeats a call until it succeeds, fails for good, or the next try would begin after `deadline`.
// Only for calls that may be repeated after an unknown outcome.
template <class Call>
auto RetryBefore(MonoTime deadline, Env& env, Call call) -> decltype(call()) {
  Backoff backoff(env);
  for (;;) {
    auto answer = call();
    if (answer || !IsTransient(answer.error().code)) return answer;
    if (!backoff.PauseBefore(deadline)) return answer;
  }
}

}  // namespace muster
