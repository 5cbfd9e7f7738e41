// Goal: a user of the library runs plans from their files as the program does. Method: the public
// engine on the memory store, with an executor that answers every call.

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include "muster/runs.h"
#include "support/await.h"
#include "support/temporary_folder.h"

namespace muster::plan {
namespace {

constexpr const char* kPlan = R"(plan: p
profiles: {local: {source: a, target: b, staging: c}}
retry: {extract: {attempts: 0}, transform: {attempts: 0}}
objects: {A: {}, B: {}}
scripts:
  load-a: {file: a.sql, schema: s, table: a}
ranks:
  - {rank: 1, extract: [A], transform: [load-a]}
  - {rank: 2, extract: [B]}
)";

// Answers every call; fails one task, and holds all of them, on demand.
class Answers final : public states::TaskExecutor {
 public:
  bool Runs(std::string_view resource) const override { return resource.starts_with("muster:"); }
  states::TaskOutcome Start(const states::TaskCall& call, states::TaskContext& context) override {
    ++calls;
    const bool does_task = call.part && call.part->does_task;
    while (does_task && hold && context.KeepAlive()) context.env().Sleep(milliseconds(5), {});
    if (does_task && call.part->task == fails) return states::TaskFailure{"Broken", "on purpose"};
    return states::TaskSuccess{{{"rows", 1}}};
  }
  states::TaskOutcome Poll(const states::TaskCall& call, const Json&,
                           states::TaskContext& context) override {
    return Start(call, context);
  }
  void Cancel(const states::TaskCall&, const Json&, states::TaskContext&) override {}
  Status BeginRun(const std::string& run) override {
    begun.push_back(run);
    return begins;
  }
  Status EndRun(const std::string& run) override {
    ended.push_back(run);
    return ends;
  }

  std::string fails;
  std::atomic<int> calls = 0;
  std::atomic<bool> hold = false;
  std::vector<std::string> begun;
  std::vector<std::string> ended;
  Status begins;
  Status ends;
};

class RunEngineTest : public ::testing::Test {
 protected:
  RunEngineTest() {
    folder_.Write("plan.yaml", kPlan);
    folder_.Write("a.sql", "SELECT 1");
  }

  Result<RunState> Start(const std::string& migration = "m") {
    return engine_->Start(
        folder_.At("plan.yaml"),
        {.inputs = {{"migrationId", migration}, {"tenantId", "t"}, {"environment", "dev"}}});
  }

  testing::TemporaryFolder folder_;
  const std::unique_ptr<store::Store> store_ = *store::OpenStore("memory:", RealEnv());
  Answers answers_;
  RunObserver nothing_;
  const std::unique_ptr<RunEngine> engine_ = NewRunEngine(*store_, {&answers_}, {}, RealEnv());
};

TEST_F(RunEngineTest, APlanFileIsRunAndReported) {
  const auto run = Start();
  ASSERT_TRUE(run) << run.error().ToString();
  const auto ended = engine_->Drive(*run, {});
  ASSERT_TRUE(ended) << ended.error().ToString();
  EXPECT_EQ(ended->status, RunStatus::kCompleted) << ended->cause;
  const auto report = engine_->Report(*ended);
  ASSERT_TRUE(report) << report.error().ToString();
  ASSERT_EQ(report->ranks.size(), 2U);
  EXPECT_EQ(report->ranks[0].tasks.size(), 2U);
  for (const RankReport& rank : report->ranks) EXPECT_EQ(rank.state, PartState::kSucceeded);
  const auto attempts = engine_->Attempts(*ended, false);
  ASSERT_TRUE(attempts && attempts->size() == 1U);
  EXPECT_FALSE(engine_->Events(attempts->front().attempt)->empty());
  EXPECT_TRUE(engine_->Events({.number = 2, .execution = "none"})->empty());
  EXPECT_EQ(engine_->Find("other").error().code, Code::kNotFound);
}

TEST_F(RunEngineTest, EveryProblemOfAPlanIsListedAndNothingIsStarted) {
  std::filesystem::remove(folder_.At("a.sql"));
  const auto missing = Start();
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, Code::kInvalid);
  EXPECT_NE(missing.error().message.find("a.sql"), std::string::npos) << missing.error().message;
  folder_.Write("plan.yaml", "plan: p\nranks: 5\nobjects: 7\n");
  const auto broken = Start();
  ASSERT_FALSE(broken);
  EXPECT_NE(broken.error().message.find('\n'), std::string::npos) << broken.error().message;
  EXPECT_TRUE(engine_->List("", 10)->empty());
}

TEST_F(RunEngineTest, AFailedRunIsResumedFromItsFileAndKeepsWhatSucceeded) {
  answers_.fails = "B";
  const auto failed = engine_->Drive(*Start(), {});
  ASSERT_TRUE(failed) << failed.error().ToString();
  EXPECT_EQ(failed->status, RunStatus::kFailed);
  answers_.fails = "";
  EXPECT_TRUE(engine_->Repeats("m", {})->empty());
  EXPECT_EQ(*engine_->Repeats("m", {.again = {.rank = 1}}),
            (std::vector<std::string>{"extract/A", "transform/load-a"}));
  const auto resumed = engine_->Resume("m", {}, nothing_, {});
  ASSERT_TRUE(resumed) << resumed.error().ToString();
  const auto ended = engine_->Drive(*resumed, {});
  ASSERT_TRUE(ended) << ended.error().ToString();
  EXPECT_EQ(ended->status, RunStatus::kCompleted) << ended->cause;
  EXPECT_EQ(ended->attempt, 2);
}

TEST_F(RunEngineTest, AMovedPlanIsFoundByItsPath) {
  answers_.fails = "B";
  ASSERT_TRUE(engine_->Drive(*Start(), {}));
  testing::TemporaryFolder elsewhere;
  for (const char* name : {"plan.yaml", "a.sql"})
    std::filesystem::rename(folder_.At(name), elsewhere.At(name));
  const auto lost = engine_->Resume("m", {}, nothing_, {});
  ASSERT_FALSE(lost);
  EXPECT_EQ(lost.error().code, Code::kInvalid);
  EXPECT_NE(lost.error().hint.find("--plan"), std::string::npos) << lost.error().hint;
  const auto found = engine_->Resume("m", {.path = elsewhere.At("plan.yaml")}, nothing_, {});
  EXPECT_TRUE(found) << found.error().ToString();
}

TEST_F(RunEngineTest, ExecutorsLearnWhenARunIsDrivenHere) {
  ASSERT_TRUE(engine_->Drive(*Start(), {}));
  EXPECT_EQ(answers_.begun, std::vector<std::string>{"m"});
  EXPECT_EQ(answers_.ended, std::vector<std::string>{"m"});
}

TEST_F(RunEngineTest, AnExecutorThatCannotBeginFailsTheDriveBeforeAnyCall) {
  answers_.begins = Error{Code::kUnavailable, "away"};
  const auto run = Start();
  ASSERT_TRUE(run);
  EXPECT_EQ(engine_->Drive(*run, {}).error().code, Code::kUnavailable);
  EXPECT_EQ(answers_.calls, 0);
  EXPECT_EQ(engine_->Find("m")->status, RunStatus::kInProgress);
  answers_.begins = {};
  EXPECT_EQ(engine_->Drive(*run, {})->status, RunStatus::kCompleted);
}

TEST_F(RunEngineTest, ExecutorThatCannotEndFailsTheDriveButNotTheRun) {
  answers_.ends = Error{Code::kUnavailable, "away"};
  EXPECT_EQ(engine_->Drive(*Start(), {}).error().code, Code::kUnavailable);
  EXPECT_EQ(engine_->Find("m")->status, RunStatus::kCompleted);
}

TEST_F(RunEngineTest, OneEngineDrivesOneRunAtATime) {
  answers_.hold = true;
  const auto first = Start();
  const auto second = Start("n");
  ASSERT_TRUE(first && second);
  std::stop_source stop;
  std::thread driving([&] { static_cast<void>(engine_->Drive(*first, stop.get_token())); });
  testing::Await([&] { return answers_.calls > 0; });
  const auto refused = engine_->Drive(*second, {});
  stop.request_stop();
  driving.join();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kConflict);
  answers_.hold = false;
  EXPECT_EQ(engine_->Drive(*second, {})->status, RunStatus::kCompleted);
}

TEST_F(RunEngineTest, ACancelledRunIsReleasedOnceItsDriverHasEnded) {
  answers_.hold = true;
  const auto run = Start();
  ASSERT_TRUE(run);
  EXPECT_FALSE(*engine_->IsReleased("m"));
  Result<RunState> ended = *run;
  std::thread driving([&] { ended = engine_->Drive(*run, {}); });
  testing::Await([&] { return answers_.calls > 0; });
  EXPECT_TRUE(NewRunEngine(*store_, {&answers_}, {}, RealEnv())->Cancel("m"));
  driving.join();
  ASSERT_TRUE(ended) << ended.error().ToString();
  EXPECT_EQ(ended->status, RunStatus::kCancelled);
  EXPECT_TRUE(*engine_->IsReleased("m"));
}

}  // namespace
}  // namespace muster::plan
