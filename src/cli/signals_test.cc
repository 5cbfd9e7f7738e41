#include "cli/signals.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/exit_codes.h"
#include "muster/env.h"

namespace muster::cli {
namespace {

// Waits, for at most a minute, until a stop is requested.
bool AwaitStop(std::stop_token stop) { return !RealEnv().Sleep(std::chrono::minutes(1), stop); }

TEST(StopOnSignals, TheFirstSignalRequestsAStop) {
  ::signal(SIGHUP, SIG_DFL);  // even if the tests run under nohup
  for (int signal : {SIGINT, SIGTERM, SIGHUP}) {
    testing::internal::CaptureStderr();
    {
      StopOnSignals signals("draining\n");
      EXPECT_FALSE(signals.Token().stop_requested());
      kill(getpid(), signal);
      EXPECT_TRUE(AwaitStop(signals.Token()));
    }
    EXPECT_EQ(testing::internal::GetCapturedStderr(), "draining\n");
  }
}

TEST(StopOnSignals, EndsWithoutASignal) {
  StopOnSignals signals;
  EXPECT_FALSE(signals.Token().stop_requested());
}

TEST(StopOnSignalsDeathTest, TheSecondSignalAbortsWithExitCode130) {
  EXPECT_EXIT(
      {
        StopOnSignals signals;
        kill(getpid(), SIGINT);
        AwaitStop(signals.Token());
        kill(getpid(), SIGINT);
        pause();
      },
      testing::ExitedWithCode(kInterrupted), "draining… press Ctrl-C again to abort");
}

TEST(StopOnSignalsDeathTest, RepeatedHangUpsStillDrain) {
  EXPECT_EXIT(
      {
        ::signal(SIGHUP, SIG_DFL);
        StopOnSignals signals;
        kill(getpid(), SIGHUP);
        AwaitStop(signals.Token());
        kill(getpid(), SIGHUP);
        kill(getpid(), SIGTERM);
        fputs("drained", stderr);
        _exit(kDone);
      },
      testing::ExitedWithCode(kDone), "drained");
}

TEST(StopOnSignalsDeathTest, HangUpIsIgnoredUnderNohup) {
  EXPECT_EXIT(
      {
        signal(SIGHUP, SIG_IGN);
        StopOnSignals signals;
        kill(getpid(), SIGHUP);
        RealEnv().Sleep(std::chrono::milliseconds(50), signals.Token());
        _exit(signals.Token().stop_requested() ? kFailed : kDone);
      },
      testing::ExitedWithCode(kDone), "^$");
}

TEST(StopOnSignalsDeathTest, AfterwardsTheCommandStillReportsHowItEnded) {
  EXPECT_EXIT(
      {
        { StopOnSignals signals; }
        kill(getpid(), SIGTERM);
        fputs("report", stderr);
        exit(kDone);
      },
      testing::ExitedWithCode(kDone), "^report$");
}

TEST(StopOnSignalsDeathTest, AfterwardsTheSecondSignalAborts) {
  EXPECT_EXIT(
      {
        { StopOnSignals signals; }
        kill(getpid(), SIGTERM);
        kill(getpid(), SIGTERM);
        exit(kDone);
      },
      testing::ExitedWithCode(kInterrupted), "^$");
}

}  // namespace
}  // namespace muster::cli
