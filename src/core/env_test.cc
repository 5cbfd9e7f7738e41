#include "muster/env.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <set>
#include <thread>

#include "core/env_wrapper.h"
#include "core/virtual_env.h"
#include "muster/result.h"

namespace muster {
namespace {

using namespace std::chrono_literals;

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x00000080
#endif

// The contract of every Env: the real one, one that forwards to it, and virtual time.
class EnvContract : public ::testing::TestWithParam<std::string> {
 protected:
  Env& env() {
    if (GetParam() == "real") return RealEnv();
    if (GetParam() == "wrapped") return wrapped_;
    return virtual_;
  }

 private:
  EnvWrapper wrapped_{RealEnv()};
  VirtualEnv virtual_;
};

INSTANTIATE_TEST_SUITE_P(All, EnvContract, ::testing::Values("real", "wrapped", "virtual"),
                         [](const auto& env) { return env.param; });

TEST_P(EnvContract, SleepLastsAsLongAsRequested) {
  const MonoTime before = env().MonoNow();
  const WallTime wall = env().WallNow();
  EXPECT_TRUE(env().Sleep(20ms, {}));
  EXPECT_GE(env().MonoNow() - before, 20ms);
  EXPECT_GT(env().WallNow(), wall);
}

TEST_P(EnvContract, RequestedStopEndsASleepAtOnce) {
  std::stop_source stop;
  stop.request_stop();
  const MonoTime before = env().MonoNow();
  EXPECT_FALSE(env().Sleep(1h, stop.get_token()));
  EXPECT_LT(env().MonoNow() - before, 1min);
}

TEST_P(EnvContract, RunsAllThreadsAndReturnsWhenAllHaveEnded) {
  std::atomic<int> ended = 0;
  std::vector<std::function<void()>> threads(5, [&] { ++ended; });
  env().RunAll(std::move(threads));
  EXPECT_EQ(ended, 5);
}

// A time namespace separates the clocks the way suspending the machine does.
TEST(Env, TimeWhileSuspendedCounts) {
  constexpr int kSeparate = 77;
  const pid_t outer = fork();
  if (outer == 0) {
    std::ofstream offsets;
    if (unshare(CLONE_NEWTIME) == 0) offsets.open("/proc/self/timens_offsets");
    if (!(offsets << "boottime 1000000 0\n" << std::flush)) _exit(kSeparate);
    const MonoTime before = RealEnv().MonoNow();
    const pid_t inner = fork();
    if (inner == 0) _exit(RealEnv().MonoNow() - before > 900'000s ? 0 : 1);
    int status = 0;
    waitpid(inner, &status, 0);
    _exit(WEXITSTATUS(status));
  }
  int status = 0;
  ASSERT_EQ(waitpid(outer, &status, 0), outer);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == kSeparate) GTEST_SKIP() << "time namespaces are not available";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(Env, StopEndsASleep) {
  std::stop_source stop;
  const MonoTime before = RealEnv().MonoNow();
  std::jthread stopper([&] { stop.request_stop(); });
  EXPECT_FALSE(RealEnv().Sleep(1h, stop.get_token()));
  EXPECT_LT(RealEnv().MonoNow() - before, 1min);
}

TEST_P(EnvContract, IdsAreDistinctInAllThreads) {
  std::vector<std::vector<std::string>> drawn(8);
  std::vector<std::jthread> threads;
  for (auto& ids : drawn) {
    threads.emplace_back([&ids, this] {
      for (int i = 0; i < 1'000; ++i) ids.push_back(env().NewId());
    });
  }
  threads.clear();
  std::set<std::string> all;
  for (const auto& ids : drawn) all.insert(ids.begin(), ids.end());
  EXPECT_EQ(all.size(), 8'000u);
  EXPECT_EQ(all.begin()->size(), 32u);
}

TEST_P(EnvContract, JitterStaysBelowItsBound) {
  for (int i = 0; i < 1'000; ++i) {
    const auto jitter = env().Jitter(10ns);
    EXPECT_GE(jitter, 0ns);
    EXPECT_LT(jitter, 10ns);
  }
  EXPECT_EQ(env().Jitter(0ns), 0ns);
}

Result<int> Half(int n) {
  if (n % 2 != 0) return Error{Code::kInvalid, "odd", "double it first"};
  return n / 2;
}

Result<int> Quarter(int n) {
  MUSTER_ASSIGN(const int half, Half(n));
  MUSTER_TRY(Half(half));
  return Half(half);
}

TEST(Result, PassesValuesAndFailuresOn) {
  EXPECT_EQ(Quarter(8).value(), 2);
  EXPECT_EQ(Quarter(6).error().message, "odd");
  EXPECT_EQ(Quarter(6).error().Within("six").ToString(), "six: odd (double it first)");
}

TEST(Result, EveryCodeHasADistinctName) {
  std::set<std::string_view> names;
  for (int code = 0; code <= static_cast<int>(Code::kInternal); ++code) {
    names.insert(CodeName(static_cast<Code>(code)));
  }
  EXPECT_EQ(names.size(), static_cast<size_t>(Code::kInternal) + 1);
}

}  // namespace
}  // namespace muster
