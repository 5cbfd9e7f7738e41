// Goal: runs started by an older version are shown and resumed. Method: records as older versions
// wrote them, without format versions and state tables: 'm' has failed, 'left' was interrupted.

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <mutex>

#include "core/json.h"
#include "plan/explain/past_runs.h"
#include "plan/run/runs.h"
#include "states/states.h"

namespace muster::plan {
namespace {

RunObserver nothing;

// Succeeds, and records the parts of the plan that calls were made for, by state.
class Recorder final : public states::TaskExecutor {
 public:
  std::map<std::string, std::optional<states::PlanPart>> parts() {
    const std::lock_guard lock(mutex_);
    return parts_;
  }

  bool Runs(std::string_view /*resource*/) const override { return true; }
  states::TaskOutcome Start(const states::TaskCall& call,
                            states::TaskContext& /*context*/) override {
    const std::lock_guard lock(mutex_);
    parts_[call.state] = call.part;
    return states::TaskSuccess{{{"rows", 1}}};
  }
  states::TaskOutcome Poll(const states::TaskCall&, const Json& resume,
                           states::TaskContext&) override {
    return states::TaskSuccess{resume};
  }
  void Cancel(const states::TaskCall&, const Json&, states::TaskContext&) override {}

 private:
  std::mutex mutex_;
  std::map<std::string, std::optional<states::PlanPart>> parts_;
};

Plan TheirPlan() {
  CheckedPlan checked = ParsePlan(R"(plan: p
profiles: {local: {source: a, target: b, staging: c}}
retry: {extract: {attempts: 0}, transform: {attempts: 0}}
objects: {A: {rows: 1}, B: {}, C: {}}
scripts:
  load-a: {file: a.sql, schema: s, table: a}
  load-c: {file: c.sql, schema: s, table: c}
ranks:
  - {rank: 1, extract: [A, B], transform: [load-a]}
  - {rank: 2, extract: [C], transform: [load-c]}
)",
                                  "p.yaml", {});
  if (!checked.plan) throw std::runtime_error(checked.problems.front());
  return *std::move(checked.plan);
}

class OldRunsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::ifstream file(MUSTER_PLAN_OLD_RUNS);
    for (std::string line; std::getline(file, line);) {
      const Json json = Json::parse(line);
      const store::Record record{.kind = json["kind"].get<std::string>(),
                                 .queue = json["queue"].get<std::string>(),
                                 .key = json["key"].get<std::string>(),
                                 .body = ToJsonText(json["body"])};
      const store::Due due = json["due"].get<bool>() ? store::Due::AtOnce() : store::Due::Never();
      ASSERT_TRUE(store->Write({{store::Change::Put(record, due)}}));
    }
  }

  RunStatus ResumeAndDrive(const std::string& id) {
    const auto run = runs.Resume(id, plan, {}, nothing, {});
    if (!run) throw std::runtime_error(run.error().ToString());
    return runs.Drive(*run, 2, {})->status;
  }

  std::unique_ptr<store::Store> store = *store::OpenStore("memory:", RealEnv());
  Recorder tasks;
  TaskGate gate{{&tasks}};
  states::States states{*store, {&gate}, {.idle_wait = milliseconds(5)}, RealEnv()};
  Runs runs{*store, states, RealEnv(), &gate};
  const Plan plan = TheirPlan();
};

TEST_F(OldRunsTest, AreListedAndShownTaskByTask) {
  const auto listed = runs.List("", 10);
  ASSERT_TRUE(listed) << listed.error().ToString();
  ASSERT_EQ(listed->size(), 2U);
  EXPECT_EQ((*listed)[0].status, RunStatus::kInProgress);
  EXPECT_EQ((*listed)[1].status, RunStatus::kFailed);
  const auto view = runs.View("m");
  ASSERT_TRUE(view) << view.error().ToString();
  EXPECT_EQ(view->Find(Phase::kExtract, "A")->status, TaskStatus::kSucceeded);
  EXPECT_EQ(view->Find(Phase::kExtract, "B")->status, TaskStatus::kFailed);
  EXPECT_EQ(view->Find(Phase::kTransform, "load-a")->status, TaskStatus::kWaiting);
}

TEST_F(OldRunsTest, AttemptsTimesAndRowsAreShown) {
  const auto view = runs.View("m");
  ASSERT_TRUE(view) << view.error().ToString();
  const TaskView* done = view->Find(Phase::kExtract, "A");
  EXPECT_EQ(done->rows, 1);
  EXPECT_EQ(done->output, R"({"rows":1})");
  ASSERT_EQ(done->attempts.size(), 1U);
  EXPECT_EQ(done->attempts[0].status, AttemptStatus::kSucceeded);
  EXPECT_EQ(done->attempts[0].end, done->end);
  const TaskView* failed = view->Find(Phase::kExtract, "B");
  ASSERT_EQ(failed->attempts.size(), 1U);
  EXPECT_EQ(failed->attempts[0].status, AttemptStatus::kFailed);
  ASSERT_TRUE(failed->failure);
  EXPECT_EQ(failed->attempts[0].failure.error, failed->failure->error);

  const auto attempts = runs.Attempts(view->run, true);
  ASSERT_TRUE(attempts) << attempts.error().ToString();
  ASSERT_EQ(attempts->size(), 1U);
  ASSERT_EQ(attempts->front().did.ranks.size(), 1U);
  EXPECT_EQ(attempts->front().did.ranks[0].tasks.size(), 2U);
  EXPECT_FALSE(runs.Events(attempts->front().attempt)->empty());

  const auto past = ReadPastRuns(*store, states, plan, plan.profiles.front());
  ASSERT_TRUE(past) << past.error().ToString();
  EXPECT_EQ(past->rows.at("A"), 1);
  EXPECT_TRUE(past->times.contains("extract/A"));
}

TEST_F(OldRunsTest, FailedRunIsResumedWithoutRepeatingSuccesses) {
  EXPECT_EQ(ResumeAndDrive("m"), RunStatus::kCompleted);
  const auto parts = tasks.parts();
  EXPECT_FALSE(parts.contains("Extract-1-A"));
  EXPECT_TRUE(parts.contains("Extract-1-B"));
  EXPECT_EQ(runs.Find("m")->attempt, 2);
}

TEST_F(OldRunsTest, InterruptedRunContinuesAndItsCallsCarryTheirTasks) {
  EXPECT_EQ(ResumeAndDrive("left"), RunStatus::kCompleted);
  const auto parts = tasks.parts();
  EXPECT_FALSE(parts.contains("Extract-1-B"));
  const auto part = parts.at("Transform-2-load-c");
  ASSERT_TRUE(part);
  EXPECT_EQ(part->rank, 2);
  EXPECT_EQ(part->phase, Phase::kTransform);
  EXPECT_EQ(part->task, "load-c");
  EXPECT_TRUE(part->does_task);
  EXPECT_EQ(parts.at("Reconcile-Rank1")->rank, 1);
  EXPECT_FALSE(parts.at("CompleteMigration"));
}

}  // namespace
}  // namespace muster::plan
