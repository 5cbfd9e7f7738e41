#pragma once

#include <chrono>
#include <functional>
#include <future>
#include <optional>
#include <stop_token>
#include <utility>

#include "muster/task.h"

namespace muster::task {

// Runs `work` on a thread of its own and meanwhile says every two seconds that this call is alive.
// `work` is asked to stop, and must then return soon, when the call is not wanted any more or its
// time is up. Returns what `work` returns.
template <class Work>
auto InBackground(const states::TaskCall& call, states::TaskContext& context, Work work) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::milliseconds kBeat{2'000};
  std::stop_source source;
  const std::stop_callback forward(context.stop(), [&] { source.request_stop(); });
  std::optional<Clock::time_point> deadline;
  if (call.timeout) deadline = Clock::now() + *call.timeout;
  auto result = std::async(std::launch::async, std::move(work), source.get_token());
  auto beat = Clock::now() + kBeat;
  while (true) {
    auto until = beat;
    if (deadline && !source.stop_requested()) until = std::min(until, *deadline);
    if (result.wait_until(until) == std::future_status::ready) return result.get();
    const auto now = Clock::now();
    if (deadline && now >= *deadline) source.request_stop();
    if (now >= beat) {
      if (!context.KeepAlive()) source.request_stop();
      beat = now + kBeat;
    }
  }
}

// Whether the call's own time has run out since `start`.
inline bool IsTimeUp(const states::TaskCall& call, std::chrono::steady_clock::time_point start) {
  return call.timeout && std::chrono::steady_clock::now() - start >= *call.timeout;
}

inline states::TaskFailure TimedOut() { return {"States.Timeout", "the task did not end in time"}; }

}  // namespace muster::task
