#include "work/suspect_gate.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace muster::work {
namespace {

using namespace std::chrono_literals;

class SuspectGateTest : public ::testing::Test {
 protected:
  static MonoTime In(milliseconds time) { return RealEnv().MonoNow() + time; }

  SuspectGate gate_{RealEnv(), 1h};
  SuspectGate::Pass one_{gate_};
  SuspectGate::Pass two_{gate_};
  std::stop_source stop_;
};

TEST_F(SuspectGateTest, ItemsStartTogetherWhileNoneIsSuspect) {
  EXPECT_TRUE(one_.Enter({}));
  EXPECT_TRUE(two_.Enter({}));
}

TEST_F(SuspectGateTest, ASuspectWaitsUntilTheOthersHaveStarted) {
  ASSERT_TRUE(one_.Enter({}));
  ASSERT_TRUE(two_.Enter({}));
  EXPECT_FALSE(one_.BeAlone(In(1ms), {}));
  std::atomic<bool> left = false;
  const std::jthread other([&] {
    RealEnv().Sleep(20ms, {});
    left = true;
    two_.Leave();
  });
  EXPECT_TRUE(one_.BeAlone(In(1min), {}));
  EXPECT_TRUE(left);
}

TEST_F(SuspectGateTest, NoItemStartsBesideASuspect) {
  ASSERT_TRUE(one_.Enter({}));
  ASSERT_TRUE(one_.BeAlone(In(0ms), {}));
  EXPECT_FALSE(two_.BeAlone(In(1ms), {})) << "not even another suspect";
  std::atomic<bool> left = false;
  const std::jthread other([&] {
    RealEnv().Sleep(20ms, {});
    left = true;
    one_.Leave();
  });
  EXPECT_TRUE(two_.Enter({}));
  EXPECT_TRUE(left);
}

TEST_F(SuspectGateTest, ASuspectThatHangsDoesNotStopTheOthersForLong) {
  SuspectGate gate(RealEnv(), 5ms);
  SuspectGate::Pass hangs(gate);
  ASSERT_TRUE(hangs.Enter({}));
  ASSERT_TRUE(hangs.BeAlone(In(1min), {}));
  SuspectGate::Pass next(gate);
  EXPECT_TRUE(next.Enter({}));
  EXPECT_TRUE(next.BeAlone(In(1min), {}));
}

TEST_F(SuspectGateTest, AStopEndsTheWait) {
  ASSERT_TRUE(one_.Enter({}));
  stop_.request_stop();
  EXPECT_FALSE(two_.BeAlone(In(1h), stop_.get_token()));
  ASSERT_TRUE(one_.BeAlone(In(0ms), {}));
  EXPECT_FALSE(two_.Enter(stop_.get_token()));
}

}  // namespace
}  // namespace muster::work
