// Goal: a history means the same to every reader. Method: hand-made histories in the engine's form.

#include "plan/run/run_log.h"

#include <gtest/gtest.h>

#include "states/states.h"

namespace muster::plan {
namespace {

WallTime At(int64_t ms) { return WallTime(milliseconds(ms)); }

// A history in which events follow each other at intervals of a millisecond.
class Story {
 public:
  Story& Enter(const std::string& type, const std::string& state, Json input = Json::object()) {
    return Add(type + "StateEntered", state, std::move(input));
  }
  Story& Exit(const std::string& type, const std::string& state, Json output) {
    return Add(type + "StateExited", state, std::move(output));
  }
  Story& Call(Json parameters) { return Add("TaskScheduled", "", std::move(parameters)); }
  Story& Succeed(Json output) { return Add("TaskSucceeded", "", std::move(output)); }
  Story& Fail(const std::string& error, const std::string& type = "TaskFailed") {
    Add(type, "", {});
    events_.back().error = error;
    events_.back().cause = "on purpose";
    return *this;
  }
  // The payload of the last event was too large.
  Story& Truncate() {
    events_.back().payload.reset();
    events_.back().truncated = true;
    return *this;
  }

  const std::vector<states::Event>& events() const { return events_; }

 private:
  Story& Add(std::string type, const std::string& name, Json payload) {
    const auto id = static_cast<int64_t>(events_.size()) + 1;
    events_.push_back({.id = id,
                       .previous = id - 1,
                       .type = std::move(type),
                       .time = At(id),
                       .name = name,
                       .payload = states::MakeValue(std::move(payload))});
    return *this;
  }

  std::vector<states::Event> events_;
};

const StateTable kStates{
    {"Extract-1-A", {1, StateRole::kTask, Phase::kExtract, "A"}},
    {"Notify-1-A", {1, StateRole::kNotify, Phase::kExtract, "A"}},
    {"Start-1-F", {1, StateRole::kFirst, Phase::kExtract, "F"}},
    {"Describe-1-F", {1, StateRole::kStep, Phase::kExtract, "F"}},
    {"Result-1-F", {1, StateRole::kLast, Phase::kExtract, "F"}},
    {"Reconcile-Rank1", {1, StateRole::kReconcile}},
    {"Rank1-Done", {1, StateRole::kRankDone}},
};

Json ResultOf(const std::string& task, const Json& result) {
  return {{"results", {{task, result}}}};
}

TaskLog LogOf(const Story& story, const std::string& task) {
  return *MakeLog(kStates, story.events()).Find(1, Phase::kExtract, task);
}

TEST(RunLog, UnstartedTaskIsWaiting) {
  const TaskLog task = LogOf({}, "A");
  EXPECT_EQ(task.state, PartState::kWaiting);
  EXPECT_EQ(task.first_state, "Extract-1-A");
  EXPECT_TRUE(task.attempts.empty());
  EXPECT_EQ(MakeLog(kStates, {}).Find(2, Phase::kExtract, "A"), nullptr);
  EXPECT_EQ(MakeLog(kStates, {}).Find(2), nullptr);
}

TEST(RunLog, AttemptsHaveTheirTimesErrorsAndBackoff) {
  Story story;
  story.Enter("Task", "Extract-1-A").Call({{"object", "A"}}).Fail("Lost");
  TaskLog task = LogOf(story, "A");
  EXPECT_EQ(task.state, PartState::kRunning);
  EXPECT_EQ(task.failed_at, At(3));
  EXPECT_EQ(task.failed_calls, 1);
  story.Call({{"object", "A"}}).Fail("States.Timeout", "TaskTimedOut").Call({{"object", "A"}});
  EXPECT_EQ(LogOf(story, "A").failed_at, std::nullopt);
  story.Succeed({{"rows", 7}}).Exit("Task", "Extract-1-A", ResultOf("A", {{"rows", 7}}));
  task = LogOf(story, "A");
  EXPECT_EQ(task.state, PartState::kSucceeded);
  EXPECT_EQ(task.start, At(1));
  EXPECT_EQ(task.stop, At(8));
  EXPECT_EQ(task.result, (Json{{"rows", 7}}));
  EXPECT_EQ(*task.asked, (Json{{"object", "A"}}));
  EXPECT_EQ(task.lines.size(), story.events().size());
  EXPECT_EQ(task.lines[2].level, TaskLogLine::Level::kError);
  EXPECT_EQ(task.lines[2].text, "Extract-1-A: TaskFailed: Lost: on purpose");
  ASSERT_EQ(task.attempts.size(), 3U);
  EXPECT_EQ(task.attempts[0].status, AttemptStatus::kFailed);
  EXPECT_EQ(task.attempts[0].failure.error, "Lost");
  EXPECT_EQ(task.attempts[0].end, At(3));
  EXPECT_EQ(task.attempts[0].backoff_until, At(4));
  EXPECT_EQ(task.attempts[1].status, AttemptStatus::kTimedOut);
  EXPECT_EQ(task.attempts[2].status, AttemptStatus::kSucceeded);
  EXPECT_EQ(task.attempts[2].end, At(8));
}

TEST(RunLog, FailedNotificationIsNotAFailureOfTheTask) {
  Story story;
  const Json left = ResultOf("A", {{"Error", "Lost"}, {"Cause", "gone"}});
  story.Enter("Task", "Extract-1-A").Call({}).Fail("Lost").Exit("Task", "Extract-1-A", left);
  story.Enter("Task", "Notify-1-A", left).Call({}).Fail("Notify.Unavailable");
  const TaskLog task = LogOf(story, "A");
  EXPECT_EQ(task.state, PartState::kFailed);
  EXPECT_EQ(task.stop, At(5));
  ASSERT_TRUE(task.failure);
  EXPECT_EQ(task.failure->error, "Lost");
  EXPECT_EQ(task.failure->cause, "gone");
  ASSERT_EQ(task.attempts.size(), 1U);
  EXPECT_EQ(task.attempts[0].failure.error, "Lost");
  EXPECT_EQ(task.attempts[0].end, At(3));
}

TEST(RunLog, AttemptWithARepeatedStepSucceeds) {
  Story story;
  story.Enter("Task", "Start-1-F").Call({{"flow", "f"}}).Succeed({{"id", "x"}});
  story.Exit("Task", "Start-1-F", Json::object());
  EXPECT_EQ(*LogOf(story, "F").answered, (Json{{"id", "x"}}));
  story.Enter("Task", "Describe-1-F").Call({}).Fail("Throttled").Call({}).Succeed({});
  story.Exit("Task", "Describe-1-F", Json::object());
  story.Enter("Pass", "Result-1-F").Exit("Pass", "Result-1-F", ResultOf("F", {{"rows", 2}}));
  const TaskLog task = LogOf(story, "F");
  EXPECT_EQ(task.state, PartState::kSucceeded);
  ASSERT_EQ(task.attempts.size(), 1U);
  EXPECT_EQ(task.attempts[0].status, AttemptStatus::kSucceeded);
  EXPECT_EQ(task.attempts[0].failure.error, "");
  EXPECT_EQ(task.failed_calls, 0);
}

// A history keeps no large payloads.
TEST(RunLog, ResultComesFromTheCallIfTheStatesOutputWasTooLarge) {
  Story story;
  story.Enter("Task", "Extract-1-A").Call({}).Succeed({{"rows", 7}});
  story.Exit("Task", "Extract-1-A", {}).Truncate();
  EXPECT_EQ(LogOf(story, "A").result, (Json{{"rows", 7}}));

  Story failed;
  failed.Enter("Task", "Extract-1-A").Call({}).Fail("Lost").Exit("Task", "Extract-1-A", {});
  failed.Truncate().Enter("Pass", "Notify-1-A").Truncate();
  EXPECT_EQ(LogOf(failed, "A").state, PartState::kFailed);
  EXPECT_EQ(LogOf(failed, "A").failure->error, "Lost");
}

TEST(RunLog, SuccessOfAnEarlierAttemptIsAPassWithoutTimes) {
  Story story;
  story.Enter("Pass", "Extract-1-A").Exit("Pass", "Extract-1-A", ResultOf("A", {{"rows", 7}}));
  const TaskLog task = LogOf(story, "A");
  EXPECT_EQ(task.state, PartState::kSucceeded);
  EXPECT_EQ(task.result, (Json{{"rows", 7}}));
  EXPECT_FALSE(task.start);
  EXPECT_FALSE(task.stop);
}

TEST(RunLog, RankIsReconciledOrReportsWhyNot) {
  Story story;
  story.Enter("Task", "Reconcile-Rank1").Call({}).Succeed({{"staged", 1}});
  Story large = story;
  story.Exit("Task", "Reconcile-Rank1", {{"reconcile", {{"result", {{"staged", 1}}}}}});
  story.Enter("Pass", "Rank1-Done").Exit("Pass", "Rank1-Done", {});
  const ExecutionLog log = MakeLog(kStates, story.events());
  EXPECT_EQ(log.Find(1)->reconciled, (Json{{"staged", 1}}));
  EXPECT_TRUE(log.Find(1)->done);
  EXPECT_FALSE(log.Find(1)->unreconciled);
  large.Exit("Task", "Reconcile-Rank1", {}).Truncate();
  EXPECT_EQ(MakeLog(kStates, large.events()).Find(1)->reconciled, (Json{{"staged", 1}}));

  Story failed;
  failed.Enter("Task", "Reconcile-Rank1").Call({}).Fail("Reconcile.Mismatch");
  failed.Exit("Task", "Reconcile-Rank1", {{"unreconciled", {{"Error", "Reconcile.Mismatch"}}}});
  const ExecutionLog other = MakeLog(kStates, failed.events());
  EXPECT_EQ(other.Find(1)->unreconciled->error, "Reconcile.Mismatch");
  EXPECT_TRUE(other.Find(1)->reconciled.is_null());
  EXPECT_FALSE(other.Find(1)->done);
}

}  // namespace
}  // namespace muster::plan
