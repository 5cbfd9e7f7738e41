// Goal: if the store's clock is set back, executions go on at once. Method: the real engine on the
// memory store, whose clock is set back by an hour while a flow is due; it must end long before the
// clock has caught up.

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>

#include "muster/states.h"
#include "muster/store.h"
#include "support/await.h"
#include "support/skewed_env.h"

namespace muster::states {
namespace {

using namespace std::chrono_literals;

class CallExecutor final : public TaskExecutor {
 public:
  explicit CallExecutor(std::function<TaskOutcome(const TaskCall& call)> answer)
      : answer_(std::move(answer)) {}
  bool Runs(std::string_view resource) const override { return resource.starts_with("test:"); }
  TaskOutcome Start(const TaskCall& call, TaskContext&) override { return answer_(call); }
  TaskOutcome Poll(const TaskCall& call, const Json&, TaskContext&) override {
    return answer_(call);
  }
  void Cancel(const TaskCall&, const Json&, TaskContext&) override {}

 private:
  std::function<TaskOutcome(const TaskCall& call)> answer_;
};

class SetBackTest : public ::testing::Test {
 protected:
  void Start(const std::string& states, const std::string& input = "{}") {
    const Status started =
        states_.Start({.name = "run",
                       .definition = R"({"StartAt":"S","States":{)" + states + "}}",
                       .input = input});
    ASSERT_TRUE(started) << started.error().ToString();
  }

  // Drives the execution until it has ended, at most for a while.
  ExecutionStatus Finish() {
    std::stop_source late;
    std::stop_source ended;
    const std::jthread watch([&] {
      if (RealEnv().Sleep(20s, ended.get_token())) late.request_stop();
    });
    EXPECT_TRUE(states_.Work("run", late.get_token()));
    ended.request_stop();
    return states_.Find("run").value()->status;
  }

  testing::SkewedEnv clock_;
  std::unique_ptr<store::Store> store_ = store::OpenStore("memory:", clock_).value();
  std::function<TaskOutcome(const TaskCall& call)> answer_ = [](const TaskCall& call) {
    return TaskOutcome(TaskSuccess{call.input});
  };
  CallExecutor executor_{[this](const TaskCall& call) { return answer_(call); }};
  States states_{
      *store_, {&executor_}, {.owner = "test", .lease = 1'000ms, .idle_wait = 5ms}, RealEnv()};
};

constexpr char kTask[] = R"("S":{"Type":"Task","Resource":"test:s","End":true})";
constexpr char kMap[] =
    R"("S":{"Type":"Map","ItemProcessor":{"StartAt":"I","States":{
       "I":{"Type":"Task","Resource":"test:i","End":true}}},"End":true})";

TEST_F(SetBackTest, AnExecutionThatWasStartedGoesOn) {
  Start(kTask);
  EXPECT_FALSE(states_.Find("run").value()->due) << "it waits for nothing";
  clock_.SetBack(1h);
  EXPECT_EQ(Finish(), ExecutionStatus::kSucceeded);
}

TEST_F(SetBackTest, BranchesThatWereStartedGoOn) {
  answer_ = [&, first = true](const TaskCall& call) mutable {
    if (std::exchange(first, false)) clock_.SetBack(1h);
    return TaskOutcome(TaskSuccess{call.input});
  };
  Start(kMap, "[1,2,3,4,5]");
  EXPECT_EQ(Finish(), ExecutionStatus::kSucceeded);
}

TEST_F(SetBackTest, ACallThatWasCutShortIsRepeated) {
  std::stop_source stop;
  answer_ = [&](const TaskCall& call) -> TaskOutcome {
    if (stop.stop_requested()) return TaskSuccess{call.input};
    stop.request_stop();
    return TaskFailure{"Stopped", "this process ends"};
  };
  Start(kTask);
  ASSERT_TRUE(states_.Work("run", stop.get_token()));
  clock_.SetBack(1h);
  EXPECT_EQ(Finish(), ExecutionStatus::kSucceeded);
}

TEST_F(SetBackTest, AnAnsweredTaskGoesOn) {
  std::string token;
  answer_ = [&](const TaskCall& call) -> TaskOutcome {
    token = call.token;
    return TaskSuccess{};
  };
  Start(R"("S":{"Type":"Task","Resource":"test:ask.waitForTaskToken","Next":"T"},
           "T":{"Type":"Pass","End":true})");
  std::jthread driver([&](const std::stop_token& stop) { EXPECT_TRUE(states_.Work("run", stop)); });
  const auto waits_for_answer = [&] {
    const store::Record record = store_->Get("states", "run").value().value();
    return record.owner.empty() && record.body.find(R"("wants":"callback")") != std::string::npos;
  };
  ASSERT_TRUE(testing::Await(waits_for_answer));
  driver.request_stop();
  driver.join();
  ASSERT_TRUE(states_.SendTaskSuccess(token, "1"));
  clock_.SetBack(1h);
  EXPECT_EQ(Finish(), ExecutionStatus::kSucceeded);
}

TEST_F(SetBackTest, ARedrivenExecutionGoesOn) {
  bool broken = true;
  answer_ = [&](const TaskCall& call) -> TaskOutcome {
    if (broken && call.input == 2) return TaskFailure{"Broken", ""};
    return TaskSuccess{call.input};
  };
  Start(kMap, "[1,2,3]");
  ASSERT_EQ(Finish(), ExecutionStatus::kFailed);
  ASSERT_TRUE(states_.Redrive("run"));
  broken = false;
  clock_.SetBack(1h);
  EXPECT_EQ(Finish(), ExecutionStatus::kSucceeded);
}

TEST_F(SetBackTest, BranchesOfAStoppedExecutionAreEnded) {
  Start(R"("S":{"Type":"Parallel","Branches":[{"StartAt":"W","States":{
           "W":{"Type":"Wait","Seconds":86400,"End":true}}}],"End":true})");
  std::jthread driver([&](const std::stop_token& stop) { EXPECT_TRUE(states_.Work("run", stop)); });
  const auto branch_waits = [&] {
    const auto records = store_->Scan("states", "run/", "", 10).value();
    return !records.empty() && records[0].owner.empty() &&
           records[0].body.find(R"("wants":"timer")") != std::string::npos;
  };
  ASSERT_TRUE(testing::Await(branch_waits));
  driver.request_stop();
  driver.join();
  ASSERT_TRUE(states_.Stop("run", "", ""));
  clock_.SetBack(1h);
  EXPECT_EQ(Finish(), ExecutionStatus::kAborted);
  EXPECT_FALSE(store_->Scan("states", "run/", "", 10).value()[0].due) << "it has ended, too";
}

}  // namespace
}  // namespace muster::states
