#include "core/condition.h"

#include <gtest/gtest.h>

#include <atomic>

namespace muster {
namespace {

using namespace std::chrono_literals;

TEST(Condition, NotifyWakesOnlyWaiters) {
  Mutex mutex;
  Condition changed(RealEnv());
  int waiting = 0;
  int tokens = 0;
  const auto wait = [&] {
    MutexLock lock(mutex);
    ++waiting;
    while (tokens == 0) changed.Wait(lock, 1h);
    --tokens;
    --waiting;
  };
  const auto give = [&] {
    for (;;) {
      MutexLock lock(mutex);
      if (waiting == 2) break;
      lock.unlock();
      RealEnv().Sleep(1ms, {});
    }
    for (int i = 0; i < 2; ++i) {
      const MutexLock lock(mutex);
      ++tokens;
      changed.NotifyOne();
    }
  };
  RealEnv().RunAll({give, wait, wait});
  EXPECT_EQ(waiting, 0);
  EXPECT_EQ(tokens, 0);
}

TEST(Condition, TimeoutAndStopEndAWait) {
  Mutex mutex;
  Condition changed(RealEnv());
  MutexLock lock(mutex);
  changed.Wait(lock, 1ms);
  std::stop_source stop;
  stop.request_stop();
  changed.Wait(lock, 1h, stop.get_token());
}

TEST(LongLock, OneThreadAtATimeHoldsIt) {
  LongLock lock(RealEnv());
  int inside = 0;
  std::atomic<bool> two = false;
  const auto take = [&] {
    for (int i = 0; i < 200; ++i) {
      const LongLockGuard held(lock);
      if (++inside > 1) two = true;
      RealEnv().Sleep(10us, {});
      --inside;
    }
  };
  RealEnv().RunAll({take, take, take});
  EXPECT_FALSE(two);
}

}  // namespace
}  // namespace muster
