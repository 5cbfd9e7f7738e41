#include "task/background.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <stdexcept>
#include <thread>

#include "core/virtual_env.h"
#include "task/test_context.h"

// In virtual time: nothing here waits for a clock.
namespace muster::task {
namespace {

using namespace std::chrono_literals;

// Gives the background thread a chance to run.
class YieldingEnv final : public VirtualEnv {
 public:
  bool Sleep(std::chrono::nanoseconds duration, std::stop_token stop) override {
    std::this_thread::yield();
    return VirtualEnv::Sleep(duration, std::move(stop));
  }
};

class Context final : public states::TaskContext {
 public:
  Env& env() override { return time; }
  bool KeepAlive() override { return ++beats < wanted_beats; }
  std::stop_token stop() const override { return stopping.get_token(); }

  YieldingEnv time;
  std::atomic<int> beats = 0;
  int wanted_beats = 1'000'000'000;
  std::stop_source stopping;
};

class BackgroundTest : public testing::Test {
 protected:
  // Until it is asked to stop.
  static void Await(const std::stop_token& stop) {
    while (!stop.stop_requested()) std::this_thread::yield();
  }
  static std::string Failure(const Result<states::TaskOutcome>& outcome) {
    if (!outcome) return "error: " + outcome.error().message;
    const auto* failure = std::get_if<states::TaskFailure>(&*outcome);
    return failure == nullptr ? "none" : failure->error;
  }
  Result<states::TaskOutcome> Run(const Work& work) { return InBackground(call_, context_, work); }

  states::TaskCall call_{.resource = "muster:test",
                         .input = {},
                         .credentials = {},
                         .token = "t",
                         .execution = "run",
                         .state = "S"};
  Context context_;
};

TEST_F(BackgroundTest, WorkIsStoppedWhenItsTimeIsUp) {
  call_.timeout = 30s;
  const auto failed = [](const std::stop_token& stop) -> Result<states::TaskOutcome> {
    Await(stop);
    return Error{Code::kCancelled, "stopped"};
  };
  const MonoTime start = context_.time.MonoNow();
  EXPECT_EQ(Failure(Run(failed)), "States.Timeout");
  EXPECT_GE(context_.time.MonoNow() - start, 30s);
  // So is one that names its own failure: a program may catch the signal.
  const auto named = [](const std::stop_token& stop) -> Result<states::TaskOutcome> {
    Await(stop);
    return states::TaskOutcome(states::TaskFailure{"Exec.ExitCode.1", ""});
  };
  EXPECT_EQ(Failure(Run(named)), "States.Timeout");
}

TEST_F(BackgroundTest, ResultThatArrivesAfterTheTimeoutIsKept) {
  call_.timeout = 30s;
  const auto done = [](const std::stop_token& stop) -> Result<states::TaskOutcome> {
    Await(stop);
    return states::TaskOutcome(states::TaskSuccess{Json(1)});
  };
  EXPECT_EQ(Failure(Run(done)), "none");
  const auto pending = [](const std::stop_token& stop) -> Result<states::TaskOutcome> {
    Await(stop);
    return states::TaskOutcome(states::TaskPending{Json("the run")});
  };
  const auto outcome = Run(pending);
  ASSERT_TRUE(outcome.has_value());
  EXPECT_TRUE(std::holds_alternative<states::TaskPending>(*outcome));
}

TEST_F(BackgroundTest, WorkIsStoppedWhenItsResultIsNoLongerWanted) {
  const auto work = [](const std::stop_token& stop) -> Result<states::TaskOutcome> {
    Await(stop);
    return Error{Code::kCancelled, "stopped"};
  };
  context_.wanted_beats = 3;
  EXPECT_EQ(Failure(Run(work)), "error: stopped");
  // It continues to beat until the work has noticed.
  EXPECT_GE(context_.beats, 3);
  context_.wanted_beats = 1'000'000'000;
  context_.stopping.request_stop();
  EXPECT_EQ(Failure(Run(work)), "error: stopped");
}

TEST_F(BackgroundTest, AnExceptionIsAnInternalError) {
  const auto outcome = Run([](const std::stop_token&) -> Result<states::TaskOutcome> {
    throw std::runtime_error("broken");
  });
  ASSERT_FALSE(outcome.has_value());
  EXPECT_EQ(outcome.error().code, Code::kInternal);
}

}  // namespace
}  // namespace muster::task
