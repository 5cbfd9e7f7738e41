// Goal: the view of a run shows what the run did. Method: real runs on the memory store, with tasks
// that fail on demand.

#include "plan/run/run_view.h"

#include <gtest/gtest.h>

#include <atomic>
#include <set>

#include "plan/model/plan_json.h"
#include "plan/run/runs.h"

namespace muster::plan {
namespace {

RunObserver nothing;

class ViewedTasks final : public states::TaskExecutor {
 public:
  std::set<std::string> failing;
  std::atomic<int> calls = 0;
  bool stop_at_failure = false;
  std::stop_source stop;

  bool Runs(std::string_view resource) const override { return resource.starts_with("muster:"); }
  states::TaskOutcome Start(const states::TaskCall& call, states::TaskContext& context) override {
    ++calls;
    context.env().Sleep(milliseconds(2), {});
    if (failing.contains(call.state)) {
      if (stop_at_failure) stop.request_stop();
      return states::TaskFailure{"Broken", "on purpose"};
    }
    return states::TaskSuccess{{{"rows", 1}}};
  }
  states::TaskOutcome Poll(const states::TaskCall&, const Json& resume,
                           states::TaskContext&) override {
    return states::TaskSuccess{resume};
  }
  void Cancel(const states::TaskCall&, const Json&, states::TaskContext&) override {}
};

Plan ThreeRanks() {
  CheckedPlan checked = ParsePlan(R"(plan: p
profiles: {local: {source: a, target: b, staging: c}}
retry: {extract: {attempts: 1, interval: 1s}, transform: {attempts: 0}}
objects: {A: {time: 5m}, B: {time: 5m}, C: {time: 5m}}
scripts:
  load-a: {file: a.sql, schema: s, table: a}
ranks:
  - {rank: 1, extract: [A], transform: [load-a]}
  - {rank: 2, extract: [B]}
  - {rank: 3, extract: [C]}
)",
                                  "p.yaml", {});
  if (!checked.plan) throw std::runtime_error(checked.problems.front());
  return *std::move(checked.plan);
}

class RunViewTest : public ::testing::Test {
 protected:
  std::unique_ptr<store::Store> store = *store::OpenStore("memory:", RealEnv());
  ViewedTasks tasks;
  states::States states{*store, {&tasks}, {.idle_wait = milliseconds(5)}, RealEnv()};
  Runs runs{*store, states, RealEnv()};
  const Plan plan = ThreeRanks();

  RunView Start(bool drive) {
    const auto run = runs.Start(plan, plan.profiles.front(),
                                {{"tenantId", "t"}, {"migrationId", "m"}, {"environment", "dev"}});
    if (!run) throw std::runtime_error(run.error().ToString());
    if (drive) static_cast<void>(runs.Drive(*run, 2, tasks.stop.get_token()));
    auto view = runs.View("m");
    if (!view) throw std::runtime_error(view.error().ToString());
    return *std::move(view);
  }
};

TEST_F(RunViewTest, APlanSurvivesItsCanonicalForm) {
  const auto again = ReadCanonical(Canonical(plan));
  ASSERT_TRUE(again) << again.error().ToString();
  Json before = Canonical(plan);
  Json after = Canonical(*again);
  // Prices and foreign keys are not read back.
  for (Json* json : {&before, &after}) {
    json->erase("prices");
    for (auto& [name, script] : (*json)["scripts"].items()) script.erase("references");
  }
  EXPECT_EQ(before, after);
}

TEST_F(RunViewTest, ARunThatSucceededShowsEveryTaskOnItsCriticalPath) {
  const RunView view = Start(true);
  EXPECT_EQ(view.run.status, RunStatus::kCompleted) << view.run.cause;
  const std::vector<std::string> path{"extract/A", "transform/load-a", "extract/B", "extract/C"};
  EXPECT_EQ(view.critical_path, path);
  for (const RankView& rank : view.ranks) {
    EXPECT_EQ(rank.status, TaskStatus::kSucceeded);
    EXPECT_EQ(rank.why, "");
    for (const TaskView& task : rank.tasks) {
      ASSERT_EQ(task.attempts.size(), 1U);
      EXPECT_EQ(task.attempts[0].status, AttemptStatus::kSucceeded);
      EXPECT_EQ(task.output, R"({"rows":1})");
      EXPECT_NE(task.input, "");
    }
  }
}

TEST_F(RunViewTest, AFailureIsShownWithItsAttemptsAndWhyOthersWait) {
  tasks.failing = {"Extract-2-B"};
  const RunView view = Start(true);
  EXPECT_EQ(view.run.status, RunStatus::kFailed);
  const TaskView* failed = view.Find(Phase::kExtract, "B");
  ASSERT_NE(failed, nullptr);
  EXPECT_EQ(failed->status, TaskStatus::kFailed);
  ASSERT_EQ(failed->attempts.size(), 2U);
  EXPECT_EQ(failed->attempts[0].status, AttemptStatus::kFailed);
  EXPECT_EQ(failed->attempts[0].backoff_until, failed->attempts[1].start);
  ASSERT_TRUE(failed->failure);
  EXPECT_EQ(failed->failure->error, "Broken");
  EXPECT_EQ(failed->why, "failed after 2 attempts: Broken");
  const TaskView* waits = view.Find(Phase::kExtract, "C");
  EXPECT_EQ(waits->status, TaskStatus::kWaiting);
  EXPECT_EQ(waits->why, "rank 2 has failed");
}

TEST_F(RunViewTest, TasksCompletedByAnEarlierAttemptAreMarked) {
  tasks.failing = {"Extract-2-B"};
  Start(true);
  tasks.failing = {};
  const auto again = runs.Resume("m", plan, {}, nothing, {});
  ASSERT_TRUE(again) << again.error().ToString();
  EXPECT_EQ(runs.Drive(*again, 2, {})->status, RunStatus::kCompleted);
  const RunView view = runs.View("m").value();
  EXPECT_TRUE(view.Find(Phase::kExtract, "A")->earlier);
  EXPECT_EQ(view.Find(Phase::kExtract, "A")->status, TaskStatus::kSucceeded);
  EXPECT_FALSE(view.Find(Phase::kExtract, "B")->earlier);
}

TEST_F(RunViewTest, RunRemembersItsVariables) {
  Plan given = plan;
  given.given = {{"customer", "acme"}};
  const auto run = runs.Start(given, given.profiles.front(),
                              {{"tenantId", "t"}, {"migrationId", "m"}, {"environment", "dev"}});
  ASSERT_TRUE(run) << run.error().ToString();
  EXPECT_EQ(runs.Find("m")->variables, given.given);
}

TEST_F(RunViewTest, RemainingTimeFollowsThePaceSoFar) {
  tasks.failing = {"Extract-2-B"};
  tasks.stop_at_failure = true;
  const RunView view = Start(true);
  EXPECT_EQ(view.run.status, RunStatus::kInProgress);
  EXPECT_EQ(view.Find(Phase::kExtract, "A")->status, TaskStatus::kSucceeded);
  ASSERT_TRUE(view.expected_end);
  // The plan expects minutes, and the completed tasks took milliseconds.
  EXPECT_LT(*view.expected_end, RealEnv().WallNow() + std::chrono::minutes(1));
}

TEST_F(RunViewTest, UnstartedTasksReportWhatTheyWaitFor) {
  const RunView view = Start(false);
  EXPECT_EQ(view.run.status, RunStatus::kInProgress);
  EXPECT_EQ(view.Find(Phase::kExtract, "A")->why, "comes next");
  EXPECT_EQ(view.Find(Phase::kExtract, "B")->why, "waits for rank 1");
  ASSERT_TRUE(view.expected_end);
  EXPECT_GT(*view.expected_end, RealEnv().WallNow() + std::chrono::minutes(14));
}

}  // namespace
}  // namespace muster::plan
