#include <gtest/gtest.h>

#include <thread>

#include "core/virtual_env.h"
#include "muster/migrate.h"

namespace muster::pipeline {
namespace {

using namespace std::chrono_literals;

class ThrottledEnv final : public VirtualEnv {
 public:
  bool Sleep(std::chrono::nanoseconds duration, std::stop_token stop) override {
    const bool slept = VirtualEnv::Sleep(duration, std::move(stop));
    if (slept && on_sleep) on_sleep();
    return slept;
  }

  double Seconds() { return std::chrono::duration<double>(MonoNow() - start_).count(); }

  std::function<void()> on_sleep = {};

 private:
  const MonoTime start_ = MonoNow();
};

TEST(Throttle, PassesAtOnceWithoutALimit) {
  ThrottledEnv env;
  Throttle throttle(env);
  for (int i = 0; i < 1000; ++i) EXPECT_TRUE(throttle.Pass(1000, 1 << 20, {}));
  EXPECT_EQ(env.Seconds(), 0);
}

TEST(Throttle, PassesDocumentsAtTheRate) {
  ThrottledEnv env;
  Throttle throttle(env);
  throttle.Set(100, 0);
  for (int i = 0; i < 101; ++i) ASSERT_TRUE(throttle.Pass(10, 1 << 30, {}));
  EXPECT_NEAR(env.Seconds(), 10, 0.01);
}

TEST(Throttle, TheLimitThatIsReachedFirstCounts) {
  ThrottledEnv env;
  Throttle throttle(env);
  throttle.Set(1000, 100);
  for (int i = 0; i < 11; ++i) ASSERT_TRUE(throttle.Pass(10, 100, {}));
  EXPECT_NEAR(env.Seconds(), 10, 0.01);
}

TEST(Throttle, WhoWaitsIsFreedByAHigherLimit) {
  ThrottledEnv env;
  Throttle throttle(env);
  throttle.Set(1, 0);
  ASSERT_TRUE(throttle.Pass(1'000'000, 0, {}));
  env.on_sleep = [&] {
    env.on_sleep = nullptr;
    throttle.Set(0, 0);
  };
  ASSERT_TRUE(throttle.Pass(1, 0, {}));
  EXPECT_LT(env.Seconds(), 1);
}

TEST(Throttle, AStopEndsTheWait) {
  Throttle throttle(RealEnv());
  throttle.Set(0.001, 0);
  ASSERT_TRUE(throttle.Pass(1, 0, {}));
  std::stop_source stop;
  std::jthread stopper([&] { stop.request_stop(); });
  EXPECT_FALSE(throttle.Pass(1, 0, stop.get_token()));
}

TEST(Throttle, BatchesAreLimitedToOneSecond) {
  ThrottledEnv env;
  Throttle throttle(env);
  EXPECT_EQ(throttle.Bounded({1000, 5000}).max_docs, 1000U);
  throttle.Set(10, 200);
  EXPECT_EQ(throttle.Bounded({1000, 5000}).max_docs, 10U);
  EXPECT_EQ(throttle.Bounded({1000, 5000}).max_bytes, 200U);
  throttle.Set(0.5, 0.5);
  EXPECT_EQ(throttle.Bounded({1000, 5000}).max_docs, 1U);
}

}  // namespace
}  // namespace muster::pipeline
