#include "task/background.h"

#include <algorithm>
#include <chrono>
#include <future>
#include <optional>
#include <utility>

#include "core/guard.h"
#include "core/secrets.h"
#include "task/parameters.h"

namespace muster::task {
namespace {

constexpr std::chrono::milliseconds kBeat{500};

}  // namespace

Result<states::TaskOutcome> InBackground(const states::TaskCall& call, states::TaskContext& context,
                                         const Work& work) {
  Env& env = context.env();
  std::stop_source stop;
  std::stop_source ended;
  const std::stop_callback forward(context.stop(), [&] { stop.request_stop(); });
  std::optional<MonoTime> deadline;
  if (call.timeout) deadline = env.MonoNow() + *call.timeout;
  auto result = std::async(std::launch::async, [&] {
    auto outcome = GuardedThread(call.resource, [&] { return work(stop.get_token()); });
    ended.request_stop();
    return outcome;
  });
  bool late = false;
  MonoTime beat = env.MonoNow() + kBeat;
  while (!ended.stop_requested()) {
    const MonoTime until = deadline && !late ? std::min(beat, *deadline) : beat;
    if (!env.Sleep(until - env.MonoNow(), ended.get_token())) break;
    const MonoTime now = env.MonoNow();
    late = deadline && now >= *deadline;
    if (late) stop.request_stop();
    if (now >= beat) {
      if (!context.KeepAlive()) stop.request_stop();
      beat = now + kBeat;
    }
  }
  auto outcome = result.get();
  // The work may have the same time limit, and reach it just before it is stopped.
  late = deadline && env.MonoNow() >= *deadline;
  const bool failed = !outcome || std::holds_alternative<states::TaskFailure>(*outcome);
  if (!late || !failed) return outcome;
  return states::TaskOutcome(
      states::TaskFailure{"States.Timeout", "the task did not finish in time"});
}

states::TaskOutcome BlockingExecutor::Start(const states::TaskCall& call,
                                            states::TaskContext& context) {
  const auto work = Prepare(call, context);
  if (!work) return states::TaskFailure{"States.Runtime", Redact(work.error().ToString())};
  auto outcome = InBackground(call, context, *work);
  if (outcome) return *std::move(outcome);
  states::TaskFailure failure = FailureOf(call, outcome.error());
  failure.cause = Redact(failure.cause);
  return failure;
}

states::TaskFailure BlockingExecutor::FailureOf(const states::TaskCall& /*call*/,
                                                const Error& error) const {
  return {FailureName(family_, error.code), error.ToString()};
}

}  // namespace muster::task
