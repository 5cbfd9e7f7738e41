#include "core/backoff.h"

#include <gtest/gtest.h>

#include "core/virtual_env.h"

namespace muster {
namespace {

using namespace std::chrono_literals;

TEST(BackoffTest, PausesDoubleUpToTheLongest) {
  VirtualEnv env;
  Backoff backoff(env, {}, {.first = 10ms, .longest = 35ms});
  for (const auto nominal : {10ms, 20ms, 35ms, 35ms}) {
    const auto pause = backoff.Next();
    EXPECT_GE(pause, nominal);
    EXPECT_LE(pause, 2 * nominal);
  }
}

TEST(BackoffTest, ThePauseFollowsFromTheNumberOfFailures) {
  constexpr Backoff::Pauses kPauses{.first = 10ms, .longest = 35ms};
  EXPECT_EQ(kPauses.After(0), 10ms);
  EXPECT_EQ(kPauses.After(1), 10ms);
  EXPECT_EQ(kPauses.After(2), 20ms);
  EXPECT_EQ(kPauses.After(3), 35ms);
  EXPECT_EQ(kPauses.After(1'000'000), 35ms);
  EXPECT_EQ((Backoff::Pauses{.first = 50ms, .longest = 35ms}.After(1)), 35ms);
  EXPECT_EQ((Backoff::Pauses{.first = 0ms, .longest = 35ms}.After(1'000'000)), 0ms);
}

TEST(BackoffTest, ThePauseFollowsFromTheOneBefore) {
  constexpr Backoff::Pauses kPauses{.first = 10ms, .longest = 35ms};
  EXPECT_EQ(kPauses.Next(0ms), 10ms);
  EXPECT_EQ(kPauses.Next(3ms), 10ms);
  EXPECT_EQ(kPauses.Next(10ms), 20ms);
  EXPECT_EQ(kPauses.Next(20ms), 35ms);
  EXPECT_EQ(kPauses.Next(std::chrono::milliseconds::max()), 35ms);
}

TEST(BackoffTest, ProgressResetsThePause) {
  VirtualEnv env;
  Backoff backoff(env, {}, {.first = 10ms, .longest = 10s});
  for (int i = 0; i < 5; ++i) backoff.Next();
  backoff.Reset();
  EXPECT_LE(backoff.Next(), 20ms);
}

TEST(BackoffTest, DoesNotPausePastTheDeadline) {
  VirtualEnv env;
  Backoff backoff(env);
  const MonoTime before = env.MonoNow();
  EXPECT_FALSE(backoff.PauseBefore(before + 20ms));
  EXPECT_EQ(env.MonoNow(), before);
  EXPECT_TRUE(backoff.PauseBefore(before + 1s));
  EXPECT_GT(env.MonoNow(), before);
}

TEST(BackoffTest, PauseEndsWithAStop) {
  VirtualEnv env;
  std::stop_source stop;
  stop.request_stop();
  EXPECT_FALSE(Backoff(env, stop.get_token()).Pause());
}

TEST(BackoffTest, TransientFailuresAreRetriedAndOthersAreNot) {
  VirtualEnv env;
  int calls = 0;
  const auto call = [&]() -> Status {
    return ++calls < 3 ? Error{Code::kUnavailable, "down"} : Error{Code::kInvalid, "wrong"};
  };
  EXPECT_EQ(RetryBefore(env.MonoNow() + 1s, env, call).error().code, Code::kInvalid);
  EXPECT_EQ(calls, 3);
}

TEST(BackoffTest, RetriesEndAtTheDeadline) {
  VirtualEnv env;
  const MonoTime deadline = env.MonoNow() + 1s;
  const auto call = []() -> Status { return Error{Code::kUnavailable, "down"}; };
  EXPECT_EQ(RetryBefore(deadline, env, call).error().code, Code::kUnavailable);
  EXPECT_LT(env.MonoNow(), deadline);
}

}  // namespace
}  // namespace muster
