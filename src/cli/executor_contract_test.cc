// Goal: a decorated executor behaves like the executor. Method: one suite on every decorator,
// around an executor that reports what reached it.

#include <gtest/gtest.h>

#include <sstream>

#include "cli/metered_executor.h"
#include "cli/progress.h"
#include "cli/watched_executor.h"
#include "core/virtual_env.h"
#include "plan/compile/task_gate.h"

namespace muster::cli {
namespace {

using states::TaskCall;
using states::TaskContext;
using states::TaskFailure;
using states::TaskOutcome;
using states::TaskPending;
using states::TaskSuccess;

class Context final : public TaskContext {
 public:
  Env& env() override { return env_; }
  bool KeepAlive() override {
    ++beats;
    return !stopping.stop_requested();
  }
  std::stop_token stop() const override { return stopping.get_token(); }

  int beats = 0;
  std::stop_source stopping;

 private:
  VirtualEnv env_;
};

// Does what its input asks for.
class Inner final : public states::TaskExecutor {
 public:
  bool Runs(std::string_view resource) const override { return resource == "test:mine"; }
  TaskOutcome Start(const TaskCall& call, TaskContext& context) override {
    calls += "start " + call.token + " ";
    const std::string wish = call.input.get<std::string>();
    if (!context.KeepAlive() || context.stop().stop_requested()) {
      return TaskFailure{"States.TaskFailed", "stopped"};
    }
    if (wish == "fail") return TaskFailure{"Mine.Invalid", "as requested"};
    if (wish == "wait") return TaskPending{"job-1", std::chrono::milliseconds(1'234)};
    return TaskSuccess{{{"rows", 3}}};
  }
  TaskOutcome Poll(const TaskCall& call, const Json& resume, TaskContext& /*context*/) override {
    calls += "poll " + call.token + " ";
    return TaskSuccess{resume};
  }
  void Cancel(const TaskCall& call, const Json& resume, TaskContext& /*context*/) override {
    calls += "cancel " + call.token + " " + resume.get<std::string>() + " ";
  }
  Status BeginRun(const std::string& run) override {
    calls += "begin " + run + " ";
    return run == "bad" ? Status(Error{Code::kInvalid, "cannot begin"}) : Status();
  }
  Status EndRun(const std::string& run) override {
    calls += "end " + run + " ";
    return run == "bad" ? Status(Error{Code::kInvalid, "cannot end"}) : Status();
  }

  std::string calls;
};

class ExecutorContract : public ::testing::TestWithParam<std::string> {
 protected:
  ExecutorContract() {
    gate_.Begin({{"Work", {.rank = 1, .phase = Phase::kExtract, .task = "work"}}});
    if (GetParam() == "wrapper") executor_ = &wrapper_;
    if (GetParam() == "gate") executor_ = &gate_;
    if (GetParam() == "metered") executor_ = &metered_;
    if (GetParam() == "watched") executor_ = &watched_;
    if (GetParam() == "all") executor_ = &all_;
  }

  static TaskCall Call(const std::string& wish) {
    return {.resource = "test:mine",
            .input = wish,
            .credentials = {},
            .token = "t1",
            .execution = "e",
            .state = "Work"};
  }

  using Phase = plan::Phase;

  Inner inner_;
  Context context_;
  states::TaskExecutor* executor_ = nullptr;

 private:
  VirtualEnv env_;
  std::ostringstream out_;
  Metrics metrics_;
  net::Tracer tracer_{"", "test"};
  Progress progress_{ProgressMode::kPlain, out_, env_, "test", 1, [] { return 80; }};
  states::ExecutorWrapper wrapper_{{&inner_}};
  plan::TaskGate gate_{{&inner_}};
  MeteredExecutor metered_{inner_, metrics_, tracer_};
  WatchedExecutor watched_{inner_, progress_};
  // As `muster run` stacks them.
  MeteredExecutor all_metered_{inner_, metrics_, tracer_};
  WatchedExecutor all_watched_{all_metered_, progress_};
  states::ExecutorWrapper all_{{&all_watched_}};
};

INSTANTIATE_TEST_SUITE_P(All, ExecutorContract,
                         ::testing::Values("wrapper", "gate", "metered", "watched", "all"),
                         [](const auto& executor) { return executor.param; });

TEST_P(ExecutorContract, RunsTheSameResources) {
  EXPECT_TRUE(executor_->Runs("test:mine"));
  EXPECT_FALSE(executor_->Runs("test:other"));
}

TEST_P(ExecutorContract, StartReturnsEveryKindOfOutcome) {
  const TaskOutcome success = executor_->Start(Call("succeed"), context_);
  ASSERT_TRUE(std::holds_alternative<TaskSuccess>(success));
  EXPECT_EQ(std::get<TaskSuccess>(success).output["rows"], 3);
  const TaskOutcome failure = executor_->Start(Call("fail"), context_);
  ASSERT_TRUE(std::holds_alternative<TaskFailure>(failure));
  EXPECT_EQ(std::get<TaskFailure>(failure).error, "Mine.Invalid");
  EXPECT_EQ(std::get<TaskFailure>(failure).cause, "as requested");
  const TaskOutcome pending = executor_->Start(Call("wait"), context_);
  ASSERT_TRUE(std::holds_alternative<TaskPending>(pending));
  EXPECT_EQ(std::get<TaskPending>(pending).resume, "job-1");
  EXPECT_EQ(std::get<TaskPending>(pending).poll_after, std::chrono::milliseconds(1'234));
  EXPECT_EQ(inner_.calls, "start t1 start t1 start t1 ");
}

TEST_P(ExecutorContract, CallsSeeTheCallersContext) {
  EXPECT_TRUE(std::holds_alternative<TaskSuccess>(executor_->Start(Call("succeed"), context_)));
  EXPECT_EQ(context_.beats, 1);
  context_.stopping.request_stop();
  EXPECT_TRUE(std::holds_alternative<TaskFailure>(executor_->Start(Call("succeed"), context_)));
}

TEST_P(ExecutorContract, PollAndCancelGetWhatTheStartReturned) {
  const TaskOutcome polled = executor_->Poll(Call("wait"), "job-1", context_);
  ASSERT_TRUE(std::holds_alternative<TaskSuccess>(polled));
  EXPECT_EQ(std::get<TaskSuccess>(polled).output, "job-1");
  executor_->Cancel(Call("wait"), "job-1", context_);
  EXPECT_EQ(inner_.calls, "poll t1 cancel t1 job-1 ");
}

TEST_P(ExecutorContract, RunsAreBegunAndEnded) {
  EXPECT_TRUE(executor_->BeginRun("good"));
  EXPECT_TRUE(executor_->EndRun("good"));
  EXPECT_FALSE(executor_->BeginRun("bad"));
  EXPECT_FALSE(executor_->EndRun("bad"));
  EXPECT_EQ(inner_.calls, "begin good end good begin bad end bad ");
}

}  // namespace
}  // namespace muster::cli
