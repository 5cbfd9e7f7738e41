// Goal: a migration continues where it stopped, never repeats a success, and has one driver at a
// time. Method: the real engine on the memory store, with tasks that fail on demand.

#include "plan/run/runs.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <cstring>
#include <fstream>
#include <future>
#include <mutex>
#include <set>
#include <thread>

#include "core/env_wrapper.h"
#include "core/record_version.h"
#include "core/virtual_env.h"
#include "muster/plan.h"
#include "plan/compile/compile.h"
#include "plan/compile/profile_states.h"
#include "plan/explain/past_runs.h"
#include "plan/model/order.h"
#include "plan/run/side_records.h"
#include "store/store_wrapper.h"
#include "support/skewed_env.h"
#include "support/temporary_folder.h"

namespace muster::plan {
namespace {

RunObserver nothing;

class Heard final : public RunObserver {
 public:
  std::vector<std::string> waits;
  void Waits(const std::string& what) override { waits.push_back(what); }
};

// Makes all calls of a local profile. Fails tasks on demand, or holds them until they are released
// or no longer wanted.
class Tasks final : public states::TaskExecutor {
 public:
  std::set<std::string> failing;

  void Keep(const std::string& state) {
    const std::lock_guard lock(mutex_);
    kept_.insert(state);
  }
  void Release(const std::string& state) {
    const std::lock_guard lock(mutex_);
    kept_.erase(state);
    changed_.notify_all();
  }
  // From now on its calls stay pending until they are ended.
  void Pend(const std::string& state) {
    const std::lock_guard lock(mutex_);
    pending_.insert(state);
  }
  void EndPending(const std::string& state) {
    const std::lock_guard lock(mutex_);
    pending_.erase(state);
  }
  void AwaitCall(const std::string& state, int times = 1) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return calls_.contains(state) && calls_[state] >= times; });
  }
  std::vector<std::string> statuses() {
    const std::lock_guard lock(mutex_);
    return statuses_;
  }
  std::map<std::string, int> calls() {
    const std::lock_guard lock(mutex_);
    return calls_;
  }

  bool Runs(std::string_view resource) const override { return resource.starts_with("muster:"); }
  states::TaskOutcome Start(const states::TaskCall& call, states::TaskContext& context) override {
    std::unique_lock lock(mutex_);
    ++calls_[call.state];
    changed_.notify_all();
    if (call.resource == "muster:status") statuses_.push_back(call.input["status"]);
    context.Progress(7);
    if (pending_.contains(call.state)) return states::TaskPending{Json::object(), milliseconds(20)};
    while (kept_.contains(call.state)) {
      changed_.wait_for(lock, milliseconds(20));
      lock.unlock();
      const bool wanted = context.KeepAlive();
      lock.lock();
      if (!wanted) return states::TaskFailure{"Stopped", "not wanted any more"};
    }
    const bool reconciles = call.resource == "muster:reconcile";
    if (failing.contains(call.state))
      return states::TaskFailure{reconciles ? "Reconcile.Mismatch" : "Broken", "on purpose"};
    return states::TaskSuccess{{{"rows", 1}}};
  }
  states::TaskOutcome Poll(const states::TaskCall& call, const Json&,
                           states::TaskContext&) override {
    const std::lock_guard lock(mutex_);
    if (pending_.contains(call.state)) return states::TaskPending{Json::object(), milliseconds(20)};
    return states::TaskSuccess{{{"rows", 1}}};
  }
  void Cancel(const states::TaskCall&, const Json&, states::TaskContext&) override {}

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, int> calls_;
  std::set<std::string> kept_;
  std::set<std::string> pending_;
  std::vector<std::string> statuses_;
};

Plan TwoRanks(const std::string& rows = "1", const std::string& further = "") {
  CheckedPlan checked = ParsePlan(further + R"(plan: p
profiles: {local: {source: a, target: b, staging: c}}
retry: {extract: {attempts: 0}, transform: {attempts: 0}}
objects: {A: {rows: )" + rows + R"(}, B: {}, C: {}}
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

const std::map<std::string, std::string> kInputs{
    {"tenantId", "t"}, {"migrationId", "m"}, {"environment", "dev"}};

class RunsTest : public ::testing::Test {
 protected:
  testing::SkewedEnv clock;  // the store's
  std::unique_ptr<store::Store> store = *store::OpenStore("memory:", clock);
  Tasks tasks;
  TaskGate gate{{&tasks}};
  states::States states{*store, {&gate}, {.idle_wait = milliseconds(5)}, RealEnv()};
  Runs runs{*store, states, RealEnv(), &gate};
  const Plan plan = TwoRanks();

  // As if the process that drives it had died a while ago.
  void Expire() {
    const auto record = store->Get(kRunKind, "m");
    ASSERT_TRUE(record && *record);
    ASSERT_TRUE(store->Write({{store::Change::Put(**record, store::Due::AtOnce())}}));
  }

  RunState RunWhole() {
    const auto run = runs.Start(plan, plan.profiles.front(), kInputs);
    if (!run) throw std::runtime_error(run.error().ToString());
    return *runs.Drive(*run, 2, {});
  }
};

TEST_F(RunsTest, ARunThatSucceedsIsCompletedAndPinsItsPlan) {
  const RunState run = RunWhole();
  EXPECT_EQ(run.status, RunStatus::kCompleted) << run.cause;
  EXPECT_EQ(Json::parse(run.output)["glue"]["load-c"]["rows"], 1);
  EXPECT_EQ(run.attempt, 1);
  EXPECT_EQ(run.hash.size(), 64U);
  EXPECT_EQ((*runs.List("", 10)).size(), 1U);
}

TEST_F(RunsTest, NewerSideRecordsOfTheCurrentAttemptAreRejected) {
  const RunState run = RunWhole();
  const auto put = [&](const char* kind, const std::string& body) {
    auto record = store->Get(kind, "m").value().value_or(
        store::Record{.kind = kind, .queue = "default", .key = "m"});
    record.body = body;
    ASSERT_TRUE(store->Write({{store::Change::Put(record, store::Due::Never())}}));
  };
  const std::string execution = R"("execution":")" + run.execution + "\"";
  // As older versions wrote them.
  put("plan.rows", "{" + execution + R"(,"rows":{"Extract-1-A":7},"waits":{},"since":5})");
  EXPECT_EQ(runs.Live(run)->rows.at("Extract-1-A"), 7);
  put("plan.wish", "{" + execution + R"(,"cancel":"drain"})");
  EXPECT_TRUE(DrainRequested(*store, run).value());
  ASSERT_TRUE(DropDrainRequest(*store, "m"));
  EXPECT_FALSE(DrainRequested(*store, run).value());
  EXPECT_EQ(store->Get("plan.wish", "m").value()->body, R"({"v":1})");
  // If nothing depends on it, a damaged one counts as missing.
  put("plan.rows", "{" + execution + R"(,"rows":5})");
  EXPECT_TRUE(runs.Live(run)->rows.empty());
  for (const char* kind : {"plan.rows", "plan.wish"}) {
    put(kind, R"({"v":2,"execution":"another"})");
    put(kind, R"({"v":2,)" + execution + "}");
  }
  EXPECT_EQ(runs.Live(run).error().message,
            "the record 'm' of plan.rows was written by a newer version of muster: in format 2, "
            "and this one reads up to format 1");
  EXPECT_TRUE(IsNewer(DrainRequested(*store, run).error()));
}

TEST_F(RunsTest, ARunOfANewerVersionIsListedAsUnreadableBesideTheOthers) {
  RunWhole();
  const store::Record newer{
      .kind = kRunKind, .queue = "default", .key = "later", .body = R"({"v": 1000})"};
  ASSERT_TRUE(store->Write({{store::Change::Put(newer, store::Due::Never())}}));
  const auto listed = runs.List("", 10);
  ASSERT_TRUE(listed) << listed.error().ToString();
  ASSERT_EQ(listed->size(), 2U);
  EXPECT_EQ((*listed)[0].status, RunStatus::kUnreadable);
  EXPECT_NE(
      (*listed)[0].cause.find("migration 'later' was written by a newer version of muster: in "
                              "format 1000, and this one reads up to format 2"),
      std::string::npos)
      << (*listed)[0].cause;
  EXPECT_EQ((*listed)[1].status, RunStatus::kCompleted);
}

// Every field of a run's record, with a value of every other type.
TEST_F(RunsTest, DamagedRecordIsReportedAsAnError) {
  RunWhole();
  const store::Record good = store->Get(kRunKind, "m").value().value();
  const Json body = Json::parse(good.body);
  std::vector<Json> damaged = {Json::array(), Json("text"), Json(5), Json()};
  const auto damage = [&](auto set) {
    for (const Json& other : {Json::array(), Json::array({5}), Json::object(), Json("text"),
                              Json(-1), Json(1e300), Json(true), Json()}) {
      Json copy = body;
      set(copy, other);
      damaged.push_back(std::move(copy));
    }
  };
  for (const auto& [name, value] : body.items()) {
    damage([&](Json& copy, const Json& other) { copy[name] = other; });
    for (const auto& [inner, part] : value.items())
      damage([&](Json& copy, const Json& other) { copy[name][inner] = other; });
    if (name != "content") continue;
    for (const auto& [inner, part] : value.items()) {
      for (const auto& [deep, deeper] : part.items())
        damage([&](Json& copy, const Json& other) { copy[name][inner][deep] = other; });
    }
  }
  int unreadable = 0;
  for (const Json& one : damaged) {
    store::Record record = store->Get(kRunKind, "m").value().value();
    record.body = ToJsonText(one);
    ASSERT_TRUE(store->Write({{store::Change::Put(record, store::Due::Never())}}));
    SCOPED_TRACE(record.body.substr(0, 300));
    const auto listed = runs.List("", 10);
    ASSERT_TRUE(listed) << listed.error().ToString();
    ASSERT_EQ(listed->size(), 1U);
    EXPECT_EQ(listed->front().id, "m");
    if (listed->front().status == RunStatus::kUnreadable) {
      ++unreadable;
      EXPECT_FALSE(listed->front().cause.empty());
    }
    // Whatever the value, nothing is thrown.
    static_cast<void>(runs.View("m"));
    static_cast<void>(runs.Report(listed->front()));
    static_cast<void>(ReadPastRuns(*store, states, plan, plan.profiles.front()));
  }
  EXPECT_GT(unreadable, 20);
}

TEST_F(RunsTest, DamagedHistoryIsReportedAsAnError) {
  const RunState run = RunWhole();
  const store::Record good = store->Get("states", run.execution).value().value();
  for (const char* type :
       {"\"name\"", "\"type\"", "\"payload\"", "\"id\"", "\"time\"", "\"details\""}) {
    for (const char* other : {"[]", "{}", "5", "null", "\"\"", "{\"name\":5,\"output\":[]}"}) {
      store::Record record = store->Get("states", run.execution).value().value();
      record.body = good.body;
      // {"name":VALUE becomes {"name":OTHER,"was":VALUE
      const std::string inserted = std::string(other) + ",\"was\":";
      for (size_t at = record.body.find(type); at != std::string::npos;
           at = record.body.find(type, at + inserted.size())) {
        at += std::strlen(type) + 1;
        record.body.insert(at, inserted);
      }
      ASSERT_TRUE(store->Write({{store::Change::Put(record, store::Due::Never())}}));
      SCOPED_TRACE(std::string(type) + " " + other);
      const auto listed = runs.List("", 10);
      ASSERT_TRUE(listed) << listed.error().ToString();
      static_cast<void>(runs.View("m"));
      static_cast<void>(runs.Report(run));
      static_cast<void>(states.List("", 10));
    }
  }
}

TEST_F(RunsTest, MigrationIsNotStartedTwice) {
  ASSERT_TRUE(runs.Start(plan, plan.profiles.front(), kInputs));
  const auto second = runs.Start(plan, plan.profiles.front(), kInputs);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, Code::kConflict);
  EXPECT_EQ(second.error().message, "migration 'm' already exists: IN_PROGRESS");
}

TEST_F(RunsTest, PlanTooLargeToStartLeavesNoRunBehind) {
  std::string objects;
  std::string names;
  for (int i = 0; i < 1000; ++i) {
    const std::string name = "Object" + std::string(50, '_') + std::to_string(i);
    objects += (i == 0 ? "" : ", ") + name + ": {}";
    names += (i == 0 ? "" : ", ") + name;
  }
  const muster::testing::TemporaryFolder folder;
  const std::string path = folder.path() + "/p.yaml";
  std::ofstream(path) << R"(plan: p
profiles: {local: {source: a, target: b, staging: c}}
objects: {)" + objects + R"(}
ranks:
  - {rank: 1, extract: [)" + names +
                             "]}\n";
  const auto large = LoadPlan(path, {});
  ASSERT_TRUE(large) << large.error().ToString();
  auto run = runs.Start(*large, large->profiles.front(), kInputs);
  ASSERT_FALSE(run);
  EXPECT_EQ(run.error().code, Code::kInvalid);
  const std::string refused = path + ": its state machine has ";
  EXPECT_TRUE(run.error().message.starts_with(refused)) << run.error().ToString();
  // A check reports it beforehand, in the same words.
  const std::vector<std::string> problems = CheckPlan(path);
  ASSERT_EQ(problems.size(), 1U);
  EXPECT_TRUE(problems[0].starts_with(refused)) << problems[0];
  EXPECT_TRUE(problems[0].ends_with("the limit is 1048576 (split it into several plans)"))
      << problems[0];
  auto inputs = kInputs;
  inputs["tenantId"] = std::string(300'000, 't');
  run = runs.Start(plan, plan.profiles.front(), inputs);
  ASSERT_FALSE(run);
  EXPECT_EQ(run.error().code, Code::kInvalid);
  EXPECT_EQ(runs.Find("m").error().code, Code::kNotFound);
}

TEST_F(RunsTest, MigrationIdsBelongToTenantAndEnvironment) {
  RunWhole();
  auto inputs = kInputs;
  inputs["environment"] = "prod";
  const auto other = runs.Start(plan, plan.profiles.front(), inputs);
  ASSERT_TRUE(other) << other.error().ToString();
  EXPECT_NE(other->id, "m");
  EXPECT_EQ(runs.Drive(*other, 2, {})->status, RunStatus::kCompleted);
  EXPECT_EQ(tasks.calls()["Extract-1-A"], 2);
  // A second one is refused by its own name.
  const auto again = runs.Start(plan, plan.profiles.front(), inputs);
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().message, "migration '" + other->id + "' already exists: COMPLETED");
  EXPECT_EQ(runs.Start(plan, plan.profiles.front(), kInputs).error().message,
            "migration 'm' already exists: COMPLETED");
  // Callers must name one of the two.
  const auto ambiguous = runs.Resolve("m");
  ASSERT_FALSE(ambiguous);
  EXPECT_EQ(ambiguous.error().message, "several migrations have the id 'm': t/prod/m, t/dev/m");
  EXPECT_EQ(*runs.Resolve("t/dev/m"), "m");
  EXPECT_EQ(*runs.Resolve("t/prod/m"), other->id);
  EXPECT_EQ(*runs.Resolve(other->id), other->id);
  EXPECT_EQ(runs.Resolve("u/prod/m").error().code, Code::kNotFound);
}

std::map<std::string, std::string> InputsOf(const std::string& migration) {
  auto inputs = kInputs;
  inputs["migrationId"] = migration;
  return inputs;
}

// Attempts are named independently of runs.
TEST_F(RunsTest, AttemptIsNotMistakenForARunOfThatName) {
  tasks.failing = {"Extract-1-B"};
  ASSERT_EQ(RunWhole().status, RunStatus::kFailed);
  tasks.failing = {};
  for (const char* name : {"m.2", "m.c", "m.2.c"}) {
    const auto other = runs.Start(plan, plan.profiles.front(), InputsOf(name));
    ASSERT_TRUE(other) << other.error().ToString();
    EXPECT_EQ(runs.Drive(*other, 2, {})->status, RunStatus::kCompleted);
  }
  tasks.failing = {"Transform-2-load-c"};
  const auto again = runs.Resume("m", plan, {}, nothing, {});
  ASSERT_TRUE(again) << again.error().ToString();
  EXPECT_EQ(runs.Drive(*again, 2, {})->status, RunStatus::kFailed);
  EXPECT_EQ(runs.Find("m")->status, RunStatus::kFailed);
  EXPECT_EQ(runs.Find("m.2")->status, RunStatus::kCompleted);
  EXPECT_EQ(runs.Find("m")->attempts.size(), 2U);
  // In the other order: the attempt exists first.
  const auto third = runs.Resume("m", plan, {}, nothing, {});
  ASSERT_TRUE(third) << third.error().ToString();
  EXPECT_EQ(runs.Drive(*third, 2, {})->status, RunStatus::kFailed);
  tasks.failing = {};
  const auto late = runs.Start(plan, plan.profiles.front(), InputsOf("m.3"));
  ASSERT_TRUE(late) << late.error().ToString();
  EXPECT_EQ(runs.Drive(*late, 2, {})->status, RunStatus::kCompleted);
  EXPECT_EQ(runs.Find("m")->status, RunStatus::kFailed);
}

// An abandoned run waits for its resume; other processes leave it alone.
TEST_F(RunsTest, ProcessDrivesOnlyItsOwnRun) {
  ASSERT_TRUE(runs.Start(plan, plan.profiles.front(), kInputs));
  Expire();
  EXPECT_FALSE(runs.Find("m")->driven);
  const auto other = runs.Start(plan, plan.profiles.front(), InputsOf("other"));
  ASSERT_TRUE(other);
  EXPECT_EQ(runs.Drive(*other, 2, {})->status, RunStatus::kCompleted);
  EXPECT_EQ(tasks.calls()["Extract-1-A"], 1);
  EXPECT_EQ(runs.Find("m")->status, RunStatus::kInProgress);
}

// As stored by older versions: attempts are known by name only.
TEST_F(RunsTest, AnAttemptOfAnOlderVersionDoesNotTakeOverAnothersResult) {
  const auto store_as_older = [&](const std::string& id, int64_t attempt) {
    store::Record record = *store->Get(kRunKind, id).value();
    Json body = Json::parse(record.body);
    body.erase("attempts");
    body["attempt"] = attempt;
    body["execution"] = attempt == 1 ? id : id + "." + std::to_string(attempt);
    record.body = ToJsonText(body);
    ASSERT_TRUE(store->Write({{store::Change::Put(record, store::Due::AtOnce())}}));
  };
  const auto begin_as_older = [&](const std::string& id) {
    const auto run = runs.Start(plan, plan.profiles.front(), InputsOf(id));
    ASSERT_TRUE(run);
    ASSERT_TRUE(states.Stop(run->execution, "Cancelled", "for the test"));
    const CompiledPlan compiled =
        Compile(plan, plan.profiles.front(), Arrange(plan, Order(plan)), {.inline_ranks = true});
    ASSERT_TRUE(states.Start({.name = id,
                              .definition = ToJsonText(compiled.main.definition),
                              .machine = plan.name,
                              .input = ToJsonText(Json(InputsOf(id)))}));
    ASSERT_TRUE(states.Work(id, {}));
    store_as_older(id, 1);
  };
  tasks.failing = {"Extract-1-B"};
  begin_as_older("m");
  tasks.failing = {};
  begin_as_older("m.2");
  ASSERT_EQ(runs.Find("m")->status, RunStatus::kFailed);
  ASSERT_EQ(runs.Find("m.2")->status, RunStatus::kCompleted);
  // The second attempt was recorded, and could not begin.
  store_as_older("m", 2);
  EXPECT_EQ(runs.Find("m")->status, RunStatus::kInProgress);
  EXPECT_EQ(runs.Find("m.2")->status, RunStatus::kCompleted);
  const auto resumed = runs.Resume("m", plan, {}, nothing, {});
  ASSERT_TRUE(resumed) << resumed.error().ToString();
  EXPECT_EQ(runs.Drive(*resumed, 2, {})->status, RunStatus::kCompleted);
  EXPECT_EQ(runs.Find("m")->attempt, 2);
  EXPECT_EQ(tasks.calls()["Extract-1-B"], 3);
}

TEST_F(RunsTest, ResumeSkipsWhatSucceeded) {
  tasks.failing = {"Extract-1-B"};
  const RunState failed = RunWhole();
  EXPECT_EQ(failed.status, RunStatus::kFailed);
  EXPECT_EQ(failed.error, "RankFailed");
  tasks.failing = {"Transform-2-load-c"};
  auto again = runs.Resume("m", plan, {}, nothing, {});
  ASSERT_TRUE(again) << again.error().ToString();
  EXPECT_EQ(runs.Drive(*again, 2, {})->status, RunStatus::kFailed);
  tasks.failing = {};
  again = runs.Resume("m", plan, {}, nothing, {});
  ASSERT_TRUE(again) << again.error().ToString();
  const RunState done = *runs.Drive(*again, 2, {});
  EXPECT_EQ(done.status, RunStatus::kCompleted) << done.cause;
  EXPECT_EQ(done.attempt, 3);
  auto calls = tasks.calls();
  EXPECT_EQ(calls["Extract-1-A"], 1);
  EXPECT_EQ(calls["Extract-1-B"], 2);
  EXPECT_EQ(calls["Transform-1-load-a"], 1);
  EXPECT_EQ(calls["Extract-2-C"], 1);
  EXPECT_EQ(calls["Transform-2-load-c"], 2);
  EXPECT_EQ(Json::parse(done.output)["appflow"]["A"]["rows"], 1);
}

// The history omits outputs of more than 8 KiB, and a task's output contains its whole lane's.
TEST_F(RunsTest, ResumeSkipsWhatSucceededInALaneOfManyTasks) {
  std::string text =
      "plan: p\npools: {flows: 1}\nprofiles: {local: {source: a, target: b, staging: c}}\n"
      "retry: {extract: {attempts: 0}}\nobjects:\n";
  std::string names;
  for (int i = 0; i < 130; ++i) {
    const std::string name = std::string(60, 'x') + std::to_string(100 + i);
    text += "  " + name + ": {}\n";
    names += (i == 0 ? "" : ", ") + name;
  }
  const Plan lane =
      *ParsePlan(text + "ranks: [{rank: 1, extract: [" + names + "]}]\n", "p.yaml", {}).plan;
  const auto run = runs.Start(lane, lane.profiles.front(), kInputs);
  ASSERT_TRUE(run) << run.error().ToString();
  const auto names_of = NewProfileStates(lane, lane.profiles.front());
  const std::string last =
      names_of->LastState(lane.ranks[0], Phase::kExtract, lane.ranks[0].extract.back().name);
  tasks.failing = {last};
  ASSERT_EQ(runs.Drive(*run, 2, {})->status, RunStatus::kFailed);
  tasks.failing = {};
  const auto again = runs.Resume("m", lane, {}, nothing, {});
  ASSERT_TRUE(again) << again.error().ToString();
  EXPECT_EQ(runs.Drive(*again, 2, {})->status, RunStatus::kCompleted);
  for (const auto& [state, calls] : tasks.calls()) {
    if (!state.starts_with("Extract-")) continue;
    EXPECT_EQ(calls, state == last ? 2 : 1) << state;
  }
}

// A rank passes on more than a history stores.
TEST_F(RunsTest, ARankOfManyTasksIsReportedWithAllItsNumbers) {
  std::string objects;
  std::string scripts;
  std::string extract;
  std::string transform;
  for (int i = 0; i < 50; ++i) {
    const std::string name = std::string(50, 'x') + std::to_string(100 + i);
    objects += "  " + name + ": {}\n";
    scripts += "  load-" + name + ": {file: a.sql, schema: s, table: " + name + "}\n";
    extract += (i == 0 ? "" : ", ") + name;
    transform += (i == 0 ? "load-" : ", load-") + name;
  }
  const Plan wide =
      *ParsePlan(
           "plan: p\nprofiles: {local: {source: a, target: b, staging: c}}\nretry: {transform: "
           "{attempts: 0}}\nobjects:\n" +
               objects + "scripts:\n" + scripts + "ranks: [{rank: 1, extract: [" + extract +
               "], transform: [" + transform + "]}]\n",
           "p.yaml", {})
           .plan;
  const auto run = runs.Start(wide, wide.profiles.front(), kInputs);
  ASSERT_TRUE(run) << run.error().ToString();
  tasks.failing = {"Reconcile-Rank1"};
  RunState ended = *runs.Drive(*run, 2, {});
  ASSERT_EQ(ended.status, RunStatus::kFailed);
  auto report = runs.Report(ended);
  ASSERT_TRUE(report) << report.error().ToString();
  ASSERT_TRUE(report->ranks[0].failure);
  EXPECT_EQ(report->ranks[0].failure->error, "Reconcile.Mismatch");
  EXPECT_EQ(report->ranks[0].failure->cause, "on purpose");
  tasks.failing = {};
  const auto again = runs.Resume("m", wide, {}, nothing, {});
  ASSERT_TRUE(again) << again.error().ToString();
  ended = *runs.Drive(*again, 2, {});
  ASSERT_EQ(ended.status, RunStatus::kCompleted) << ended.cause;
  report = runs.Report(ended);
  EXPECT_EQ(report->ranks[0].reconciled, (Json{{"rows", 1}}));
  for (const TaskReport& task : report->ranks[0].tasks) EXPECT_EQ(task.rows, 1) << task.name;
  // Even for an attempt that repeats one task.
  const auto retried =
      runs.Resume("m", wide, {.again = {.task = wide.scripts.begin()->first}}, nothing, {});
  ASSERT_TRUE(retried) << retried.error().ToString();
  report = runs.Report(*runs.Drive(*retried, 2, {}));
  EXPECT_EQ(report->ranks[0].reconciled, (Json{{"rows", 1}}));
  for (const TaskReport& task : report->ranks[0].tasks) EXPECT_EQ(task.rows, 1) << task.name;
}

TEST_F(RunsTest, APlanThatHasChangedIsRefusedUnlessAccepted) {
  tasks.failing = {"Extract-1-B"};
  RunWhole();
  tasks.failing = {};
  const Plan changed = TwoRanks("2");
  const auto refused = runs.Resume("m", changed, {}, nothing, {});
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("objects.A.rows: 1 → 2"), std::string::npos)
      << refused.error().message;
  const auto accepted = runs.Resume("m", changed, {.accept_changes = true}, nothing, {});
  ASSERT_TRUE(accepted) << accepted.error().ToString();
  EXPECT_EQ(runs.Drive(*accepted, 2, {})->status, RunStatus::kCompleted);
}

TEST_F(RunsTest, CompletedRunIsRepeatedOnlyInPart) {
  RunWhole();
  EXPECT_EQ(runs.Resume("m", plan, {}, nothing, {}).error().code, Code::kConflict);
  const auto retried = runs.Resume("m", plan, {.again = {.rank = 2}}, nothing, {});
  ASSERT_TRUE(retried) << retried.error().ToString();
  EXPECT_EQ(runs.Drive(*retried, 2, {})->status, RunStatus::kCompleted);
  auto calls = tasks.calls();
  EXPECT_EQ(calls["Extract-1-A"], 1);
  EXPECT_EQ(calls["Extract-2-C"], 2);
  EXPECT_EQ(runs.Resume("m", plan, {.again = {.task = "nobody"}}, nothing, {}).error().message,
            "no task 'nobody'");
}

TEST_F(RunsTest, ReadersOfARepeatedObjectAreRepeated) {
  RunWhole();
  const auto foreseen = runs.DoneAgain("m", plan, {.task = "A"});
  const auto retried = runs.Resume("m", plan, {.again = {.task = "A"}}, nothing, {});
  ASSERT_TRUE(retried) << retried.error().ToString();
  EXPECT_EQ(retried->invalidated, (std::vector<std::string>{"extract/A", "transform/load-a"}));
  EXPECT_EQ(*foreseen, retried->invalidated);
  EXPECT_EQ(runs.Drive(*retried, 2, {})->status, RunStatus::kCompleted);
  auto calls = tasks.calls();
  EXPECT_EQ(calls["Extract-1-A"], 2);
  EXPECT_EQ(calls["Extract-1-B"], 1);
  EXPECT_EQ(calls["Transform-1-load-a"], 2);
  EXPECT_EQ(calls["Reconcile-Rank1"], 2);
  EXPECT_EQ(calls["Reconcile-Rank2"], 1);
}

// A rank that continued without a task was reconciled without it.
TEST_F(RunsTest, RankThatContinuedAfterAFailureIsReconciledAgain) {
  const Plan going_on = TwoRanks("1", "on_failure: continue\n");
  tasks.failing = {"Transform-1-load-a", "Extract-2-C"};
  const auto run = runs.Start(going_on, going_on.profiles.front(), kInputs);
  ASSERT_TRUE(run);
  ASSERT_EQ(runs.Drive(*run, 2, {})->status, RunStatus::kFailed);
  EXPECT_EQ(tasks.calls()["Reconcile-Rank1"], 1);
  tasks.failing = {"Extract-2-C"};
  const auto again = runs.Resume("m", going_on, {}, nothing, {});
  ASSERT_TRUE(again) << again.error().ToString();
  ASSERT_EQ(runs.Drive(*again, 2, {})->status, RunStatus::kFailed);
  EXPECT_EQ(tasks.calls()["Reconcile-Rank1"], 2);
  EXPECT_EQ(tasks.calls()["Reconcile-Rank2"], 2);
  tasks.failing = {};
  const auto last = runs.Resume("m", going_on, {}, nothing, {});
  ASSERT_TRUE(last) << last.error().ToString();
  EXPECT_EQ(runs.Drive(*last, 2, {})->status, RunStatus::kCompleted);
  EXPECT_EQ(tasks.calls()["Reconcile-Rank1"], 2);
  EXPECT_EQ(tasks.calls()["Reconcile-Rank2"], 3);
}

TEST_F(RunsTest, EditedScriptIsRejectedOrRepeated) {
  Plan pinned = plan;
  pinned.scripts.at("load-a").sha256 = "one";
  const auto run = runs.Start(pinned, pinned.profiles.front(), kInputs);
  ASSERT_TRUE(run);
  tasks.failing = {"Transform-2-load-c"};
  ASSERT_EQ(runs.Drive(*run, 2, {})->status, RunStatus::kFailed);
  tasks.failing = {};
  Plan edited = pinned;
  edited.scripts.at("load-a").sha256 = "two";
  const auto refused = runs.Resume("m", edited, {}, nothing, {});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kConflict);
  EXPECT_NE(refused.error().message.find("the script load-a: a.sql was edited"), std::string::npos)
      << refused.error().message;
  const auto accepted = runs.Resume("m", edited, {.accept_changes = true}, nothing, {});
  ASSERT_TRUE(accepted) << accepted.error().ToString();
  EXPECT_EQ(accepted->invalidated, std::vector<std::string>{"transform/load-a"});
  EXPECT_EQ(runs.Drive(*accepted, 2, {})->status, RunStatus::kCompleted);
  EXPECT_EQ(tasks.calls()["Extract-1-A"], 1);
  EXPECT_EQ(tasks.calls()["Transform-1-load-a"], 2);
}

// The new plan does not finish what a dead process was doing.
TEST_F(RunsTest, EditIsAcceptedByAnInterruptedRun) {
  tasks.Keep("Transform-1-load-a");
  const auto run = runs.Start(plan, plan.profiles.front(), kInputs);
  ASSERT_TRUE(run);
  std::stop_source stop;
  auto driven =
      std::async(std::launch::async, [&] { return runs.Drive(*run, 2, stop.get_token()); });
  tasks.AwaitCall("Transform-1-load-a");
  stop.request_stop();
  ASSERT_EQ(driven.get()->status, RunStatus::kInProgress);
  tasks.Release("Transform-1-load-a");
  Plan edited = plan;
  edited.scripts.at("load-a").sha256 = "two";
  const auto accepted = runs.Resume("m", edited, {.accept_changes = true}, nothing, {});
  ASSERT_TRUE(accepted) << accepted.error().ToString();
  EXPECT_EQ(accepted->attempt, 2);
  EXPECT_EQ(runs.Drive(*accepted, 2, {})->status, RunStatus::kCompleted);
  EXPECT_EQ(tasks.calls()["Extract-1-A"], 1);
}

TEST_F(RunsTest, InterruptedRunIsResumedThoughTheClockWasSetBack) {
  tasks.Keep("Transform-1-load-a");
  const auto run = runs.Start(plan, plan.profiles.front(), kInputs);
  ASSERT_TRUE(run);
  std::stop_source stop;
  auto driven =
      std::async(std::launch::async, [&] { return runs.Drive(*run, 2, stop.get_token()); });
  tasks.AwaitCall("Transform-1-load-a");
  stop.request_stop();
  ASSERT_EQ(driven.get()->status, RunStatus::kInProgress);
  tasks.Release("Transform-1-load-a");
  clock.SetBack(std::chrono::hours(1));
  EXPECT_FALSE(runs.Find("m")->driven);
  const auto again = runs.Resume("m", plan, {}, nothing, {});
  ASSERT_TRUE(again) << again.error().ToString();
  EXPECT_EQ(runs.Drive(*again, 2, {})->status, RunStatus::kCompleted);
}

TEST_F(RunsTest, RunWithoutPinnedScriptsIsComparedWithoutThem) {
  tasks.failing = {"Extract-1-B"};
  RunWhole();
  tasks.failing = {};
  store::Record record = store->Get(kRunKind, "m").value().value();
  Json body = Json::parse(record.body);
  body.erase("pins_scripts");
  record.body = ToJsonText(body);
  ASSERT_TRUE(store->Write({{store::Change::Put(record, store::Due::AtOnce())}}));
  Plan looked_into = plan;
  looked_into.scripts.at("load-a").sha256 = "one";
  const auto again = runs.Resume("m", looked_into, {}, nothing, {});
  ASSERT_TRUE(again) << again.error().ToString();
  EXPECT_EQ(runs.Drive(*again, 2, {})->status, RunStatus::kCompleted);
}

TEST_F(RunsTest, CancelledRunHasItsStatusAndCanBeResumed) {
  // It has no driver: the process that started it is gone.
  const auto run = runs.Start(plan, plan.profiles.front(), kInputs);
  ASSERT_TRUE(run);
  const Status cancelled = runs.Cancel("m");
  ASSERT_TRUE(cancelled) << cancelled.error().ToString();
  EXPECT_EQ(runs.Find("m")->status, RunStatus::kCancelled);
  EXPECT_EQ(tasks.statuses(), std::vector<std::string>{"CANCELLED"});
  EXPECT_EQ(runs.Cancel("m").error().code, Code::kConflict);
  Expire();
  const auto again = runs.Resume("m", plan, {}, nothing, {});
  ASSERT_TRUE(again) << again.error().ToString();
  EXPECT_EQ(runs.Drive(*again, 2, {})->status, RunStatus::kCompleted);
  EXPECT_EQ(tasks.statuses().back(), "COMPLETED");
}

TEST_F(RunsTest, CancelStopsRunningTasks) {
  tasks.Keep("Extract-1-A");
  const auto run = runs.Start(plan, plan.profiles.front(), kInputs);
  ASSERT_TRUE(run);
  auto driven = std::async(std::launch::async, [&] { return runs.Drive(*run, 2, {}); });
  tasks.AwaitCall("Extract-1-A");
  const MonoTime asked = RealEnv().MonoNow();
  const Status cancelled = runs.Cancel("m");
  ASSERT_TRUE(cancelled) << cancelled.error().ToString();
  EXPECT_EQ(driven.get()->status, RunStatus::kCancelled);
  EXPECT_LT(RealEnv().MonoNow() - asked, std::chrono::seconds(5));
  EXPECT_EQ(tasks.statuses(), (std::vector<std::string>{"IN_PROGRESS", "CANCELLED"}));
  const auto report = runs.Report(*runs.Find("m"));
  ASSERT_TRUE(report);
  EXPECT_EQ(report->ranks[0].tasks[0].state, PartState::kStopped);
  EXPECT_EQ(report->ranks[1].state, PartState::kWaiting);
}

TEST_F(RunsTest, DrainLetsRunningTasksEndAndStartsNoOthers) {
  tasks.Keep("Extract-1-A");
  const auto run = runs.Start(plan, plan.profiles.front(), kInputs);
  ASSERT_TRUE(run);
  auto driven = std::async(std::launch::async, [&] { return runs.Drive(*run, 2, {}); });
  tasks.AwaitCall("Extract-1-A");
  tasks.AwaitCall("Extract-1-B");
  auto drained = std::async(std::launch::async, [&] { return runs.Drain("m", 2, nothing, {}); });
  // The request is known before the last running task can end.
  while (!gate.closed()) std::this_thread::yield();
  tasks.Release("Extract-1-A");
  EXPECT_EQ(drained.get()->status, RunStatus::kCancelled);
  EXPECT_EQ(driven.get()->status, RunStatus::kCancelled);
  EXPECT_EQ(tasks.statuses(), (std::vector<std::string>{"IN_PROGRESS", "CANCELLED"}));
  EXPECT_FALSE(tasks.calls().contains("Transform-1-load-a"));
  const auto again = runs.Resume("m", plan, {}, nothing, {});
  ASSERT_TRUE(again) << again.error().ToString();
  EXPECT_EQ(runs.Drive(*again, 2, {})->status, RunStatus::kCompleted);
  EXPECT_EQ(tasks.calls()["Extract-1-A"], 1);
  EXPECT_EQ(runs.Drain("m", 2, nothing, {}).error().code, Code::kConflict);
}

// The draining process has started a call whose end was seen by another process.
TEST_F(RunsTest, ACallThatEndedInAnotherProcessDoesNotHoldUpADrain) {
  tasks.Pend("Extract-1-A");
  const auto drive_until = [&](Runs& by, const RunState& run, const std::string& call) {
    std::stop_source stop;
    auto driven =
        std::async(std::launch::async, [&] { return by.Drive(run, 2, stop.get_token()); });
    tasks.AwaitCall(call);
    stop.request_stop();
    EXPECT_EQ(driven.get()->status, RunStatus::kInProgress);
  };
  drive_until(runs, *runs.Start(plan, plan.profiles.front(), kInputs), "Extract-1-A");
  tasks.EndPending("Extract-1-A");
  tasks.Keep("Transform-1-load-a");
  {
    TaskGate other_gate{{&tasks}};
    states::States other_states{*store, {&other_gate}, {.idle_wait = milliseconds(5)}, RealEnv()};
    Runs other{*store, other_states, RealEnv(), &other_gate};
    drive_until(other, *other.Resume("m", plan, {}, nothing, {}), "Transform-1-load-a");
  }
  std::stop_source stop;
  const std::jthread limit([&](const std::stop_token& done) {
    if (RealEnv().Sleep(std::chrono::seconds(20), done)) stop.request_stop();
  });
  const auto run = runs.Resume("m", plan, {}, nothing, {});
  ASSERT_TRUE(run) << run.error().ToString();
  auto driven =
      std::async(std::launch::async, [&] { return runs.Drive(*run, 2, stop.get_token()); });
  tasks.AwaitCall("Transform-1-load-a", 2);
  auto drained =
      std::async(std::launch::async, [&] { return runs.Drain("m", 2, nothing, stop.get_token()); });
  while (!gate.closed() && !stop.stop_requested()) std::this_thread::yield();
  tasks.Release("Transform-1-load-a");
  EXPECT_EQ(drained.get()->status, RunStatus::kCancelled);
  EXPECT_EQ(driven.get()->status, RunStatus::kCancelled);
}

TEST_F(RunsTest, RunWithoutADriverIsDrainedWithoutStartingTasks) {
  ASSERT_TRUE(runs.Start(plan, plan.profiles.front(), kInputs));
  Expire();
  Runs other(*store, states, RealEnv(), &gate);
  const auto drained = other.Drain("m", 2, nothing, {});
  ASSERT_TRUE(drained) << drained.error().ToString();
  EXPECT_EQ(drained->status, RunStatus::kCancelled);
  EXPECT_EQ(tasks.statuses().back(), "CANCELLED");
  EXPECT_FALSE(tasks.calls().contains("Extract-1-A"));
}

// Acts just before the first request is stored.
class StoreWithALateWish final : public store::StoreWrapper {
 public:
  StoreWithALateWish(store::Store& inner, std::function<void()> before)
      : StoreWrapper(inner), before_(std::move(before)) {}

  Result<std::vector<store::Written>> Write(std::span<const store::Change> changes) override {
    if (!changes.empty() && changes.front().record.kind == "plan.wish" && before_)
      std::exchange(before_, nullptr)();
    return inner().Write(changes);
  }

 private:
  std::function<void()> before_;
};

TEST_F(RunsTest, DrainRequestForAnEarlierAttemptIsDroppedWithAMessage) {
  ASSERT_TRUE(runs.Start(plan, plan.profiles.front(), kInputs));
  StoreWithALateWish late(*store, [&] {
    ASSERT_TRUE(runs.Cancel("m"));
    Expire();
    ASSERT_TRUE(runs.Resume("m", plan, {}, nothing, {}));
  });
  Runs other(late, states, RealEnv(), &gate);
  std::stop_source stop;
  const std::jthread limit([&](const std::stop_token& done) {
    if (RealEnv().Sleep(std::chrono::seconds(20), done)) stop.request_stop();
  });
  const auto drained = other.Drain("m", 2, nothing, stop.get_token());
  ASSERT_FALSE(drained);
  EXPECT_EQ(drained.error().code, Code::kConflict);
  EXPECT_NE(drained.error().message.find("attempt 2 continues"), std::string::npos)
      << drained.error().message;
  EXPECT_EQ(runs.Find("m")->status, RunStatus::kInProgress);
}

TEST_F(RunsTest, ARankWhoseRowsAreMissingFailsAndIsReconciledAgain) {
  tasks.failing = {"Reconcile-Rank1"};
  const RunState failed = RunWhole();
  EXPECT_EQ(failed.status, RunStatus::kFailed);
  EXPECT_EQ(failed.error, "RankFailed");
  EXPECT_EQ(failed.cause, "on purpose");
  const auto report = runs.Report(failed);
  ASSERT_TRUE(report) << report.error().ToString();
  EXPECT_EQ(report->ranks[0].state, PartState::kFailed);
  EXPECT_EQ(report->ranks[0].failure->cause, "on purpose");
  EXPECT_EQ(report->ranks[1].state, PartState::kWaiting);
  tasks.failing = {};
  const auto again = runs.Resume("m", plan, {}, nothing, {});
  ASSERT_TRUE(again) << again.error().ToString();
  const RunState done = *runs.Drive(*again, 2, {});
  EXPECT_EQ(done.status, RunStatus::kCompleted) << done.cause;
  auto calls = tasks.calls();
  EXPECT_EQ(calls["Extract-1-A"], 1);
  EXPECT_EQ(calls["Transform-1-load-a"], 1);
  EXPECT_EQ(calls["Reconcile-Rank1"], 2);
  EXPECT_EQ(calls["Reconcile-Rank2"], 1);
  // Repeated tasks are reconciled again, and no others.
  const auto retried = runs.Resume("m", plan, {.again = {.task = "load-c"}}, nothing, {});
  ASSERT_TRUE(retried) << retried.error().ToString();
  EXPECT_EQ(runs.Drive(*retried, 2, {})->status, RunStatus::kCompleted);
  calls = tasks.calls();
  EXPECT_EQ(calls["Reconcile-Rank1"], 2);
  EXPECT_EQ(calls["Reconcile-Rank2"], 2);
  const Json ranks = ToJson(*runs.Report(*runs.Find("m")));
  EXPECT_EQ(ranks[0]["status"], "SUCCEEDED");
  EXPECT_EQ(ranks[0]["reconciled"], (Json{{"rows", 1}}));
  EXPECT_EQ(ranks[1]["tasks"][1]["task"], "load-c");
}

TEST_F(RunsTest, PlanThatContinuesFailsAtItsEndIfRowsAreMissing) {
  const Plan lenient = TwoRanks("1", "on_failure: continue\n");
  tasks.failing = {"Reconcile-Rank1"};
  const auto run = runs.Start(lenient, lenient.profiles.front(), kInputs);
  ASSERT_TRUE(run);
  const RunState done = *runs.Drive(*run, 2, {});
  EXPECT_EQ(done.status, RunStatus::kFailed);
  EXPECT_EQ(done.error, "MigrationFailed");
  EXPECT_EQ(tasks.calls()["Transform-2-load-c"], 1);
}

TEST_F(RunsTest, RowsOfRunningTasksArePublished) {
  tasks.Keep("Extract-1-A");
  const auto run = runs.Start(plan, plan.profiles.front(), kInputs);
  ASSERT_TRUE(run);
  std::stop_source stop;
  auto driven =
      std::async(std::launch::async, [&] { return runs.Drive(*run, 2, stop.get_token()); });
  Runs other(*store, states, RealEnv());
  while (!other.Live(*run)->rows.contains("Extract-1-A")) std::this_thread::yield();
  EXPECT_EQ(other.Live(*run)->rows.at("Extract-1-A"), 7);
  EXPECT_TRUE(other.Find("m")->driven);
  tasks.Release("Extract-1-A");
  EXPECT_EQ(driven.get()->status, RunStatus::kCompleted);
  EXPECT_FALSE(other.Find("m")->driven);
}

TEST_F(RunsTest, WaitOfARetriedTaskIsReported) {
  Plan patient = plan;
  patient.objects.at("A").rules.retry = {.interval_s = 300, .attempts = 2, .backoff = 2};
  tasks.failing = {"Extract-1-A"};
  const auto run = runs.Start(patient, patient.profiles.front(), kInputs);
  ASSERT_TRUE(run);
  std::stop_source stop;
  auto driven =
      std::async(std::launch::async, [&] { return runs.Drive(*run, 2, stop.get_token()); });
  std::optional<RetryReport> retry;
  while (!retry) {
    retry = runs.Report(*runs.Find("m"))->ranks[0].tasks[0].retry;
    std::this_thread::yield();
  }
  stop.request_stop();
  ASSERT_EQ(driven.get()->status, RunStatus::kInProgress);
  EXPECT_EQ(retry->failed, 1);
  EXPECT_EQ(retry->of, 3);
  EXPECT_EQ(retry->why.error, "Broken");
  EXPECT_GT(retry->next, RealEnv().WallNow());
  EXPECT_LE(retry->next, RealEnv().WallNow() + std::chrono::seconds(300));
  const Json ranks = ToJson(*runs.Report(*runs.Find("m")));
  EXPECT_EQ(ranks[0]["tasks"][0]["retry"]["attempt"], 2);
}

TEST_F(RunsTest, ResumedRunKeepsItsStart) {
  tasks.failing = {"Extract-1-B"};
  const RunState first = RunWhole();
  tasks.failing = {};
  const auto again = runs.Resume("m", plan, {}, nothing, {});
  ASSERT_TRUE(again) << again.error().ToString();
  const RunState done = *runs.Drive(*again, 2, {});
  EXPECT_EQ(done.FirstStart(), first.FirstStart());
  EXPECT_GT(done.start, first.start);
}

TEST_F(RunsTest, PastRunsProvideTimesAndRows) {
  RunWhole();
  const auto past = ReadPastRuns(*store, states, plan, plan.profiles.front());
  ASSERT_TRUE(past) << past.error().ToString();
  EXPECT_EQ(past->runs, std::vector<std::string>{"m"});
  EXPECT_EQ(past->times.size(), 5U);
  EXPECT_EQ(past->rows, (std::map<std::string, int64_t>{{"A", 1}, {"B", 1}, {"C", 1}}));
  Plan next = TwoRanks("500");
  ApplyPast(*past, next);
  EXPECT_EQ(next.objects.at("A").rows, 1);
  EXPECT_EQ(next.scripts.at("load-c").time->max, past->times.at("transform/load-c").max);
  next.name = "another";
  EXPECT_TRUE(ReadPastRuns(*store, states, next, plan.profiles.front())->runs.empty());
}

TEST_F(RunsTest, InputsThatAreMissingOrUnknownAreNamed) {
  const Profile& profile = plan.profiles.front();
  EXPECT_EQ(runs.Start(plan, profile, {{"tenantId", "t"}}).error().hint,
            "add --input environment=… --input migrationId=…");
  auto inputs = kInputs;
  inputs["tenant"] = "t";
  EXPECT_EQ(runs.Start(plan, profile, inputs).error().message, "unknown input 'tenant'");
  inputs = kInputs;
  inputs["migrationId"] = "a/b";
  EXPECT_EQ(runs.Start(plan, profile, inputs).error().message, "'a/b' cannot be a migrationId");
  EXPECT_EQ(runs.Find("nobody").error().code, Code::kNotFound);
}

TEST(RunsLease, ADriverThatDisappearsIsReplacedWhenItsLeaseEnds) {
  VirtualEnv env{WallTime(std::chrono::hours(1'000))};
  const auto store = *store::OpenStore("memory:", env);
  Tasks tasks;
  states::States states(*store, {&tasks}, {}, env);
  const Plan plan = TwoRanks();
  Runs gone(*store, states, env);
  ASSERT_TRUE(gone.Start(plan, plan.profiles.front(), kInputs));
  const WallTime before = env.WallNow();
  Runs next(*store, states, env);
  Heard heard;
  const auto run = next.Resume("m", plan, {}, heard, {});
  ASSERT_TRUE(run) << run.error().ToString();
  EXPECT_EQ(run->attempt, 1);
  EXPECT_GE(env.WallNow() - before, std::chrono::seconds(14));
  ASSERT_EQ(heard.waits.size(), 1U);
  EXPECT_NE(heard.waits[0].find("s for its lease to end"), std::string::npos) << heard.waits[0];
}

// The clock of a process that is suspended in its first sleep until woken.
class SuspendedEnv final : public EnvWrapper {
 public:
  using EnvWrapper::EnvWrapper;

  MonoTime MonoNow() override {
    const std::lock_guard lock(mutex_);
    return inner().MonoNow() + (awake_ ? kSuspended : std::chrono::minutes(0));
  }
  bool Sleep(std::chrono::nanoseconds duration, std::stop_token stop) override {
    {
      std::unique_lock lock(mutex_);
      if (!woken_.wait(lock, stop, [this] { return awake_; })) return false;
    }
    return inner().Sleep(std::min<std::chrono::nanoseconds>(duration, milliseconds(1)), stop);
  }
  void Wake() {
    const std::lock_guard lock(mutex_);
    awake_ = true;
    woken_.notify_all();
  }

 private:
  static constexpr std::chrono::minutes kSuspended{1};
  std::mutex mutex_;
  std::condition_variable_any woken_;
  bool awake_ = false;
};

TEST_F(RunsTest, ProcessThatLostItsRunStopsWithAnError) {
  SuspendedEnv env(RealEnv());
  Runs suspended(*store, states, env, &gate);
  tasks.Keep("Extract-1-A");
  const auto run = suspended.Start(plan, plan.profiles.front(), kInputs);
  ASSERT_TRUE(run) << run.error().ToString();
  auto driven = std::async(std::launch::async, [&] { return suspended.Drive(*run, 2, {}); });
  tasks.AwaitCall("Extract-1-A");
  Expire();
  Runs next(*store, states, RealEnv());
  const auto taken = next.Resume("m", plan, {}, nothing, {});
  ASSERT_TRUE(taken) << taken.error().ToString();
  const store::Record held = store->Get(kRunKind, "m").value().value();
  env.Wake();
  const auto lost = driven.get();
  ASSERT_FALSE(lost);
  EXPECT_EQ(lost.error().code, Code::kLeaseLost);
  EXPECT_EQ(lost.error().message,
            "another process has taken over migration 'm'; this one has stopped");
  EXPECT_FALSE(tasks.calls().contains("Transform-1-load-a"));
  EXPECT_EQ(store->Get(kRunKind, "m").value().value().version, held.version);
  // Nor can it start over under the claim that it lost.
  EXPECT_EQ(suspended.Drive(*run, 2, {}).error().code, Code::kLeaseLost);
  tasks.Release("Extract-1-A");
  EXPECT_EQ(next.Drive(*taken, 2, {})->status, RunStatus::kCompleted);
}

// Writes of a run's record take effect, but their first replies are lost.
class StoreThatLosesReplies final : public store::StoreWrapper {
 public:
  using store::StoreWrapper::StoreWrapper;

  Result<std::vector<store::Written>> Write(std::span<const store::Change> changes) override {
    auto written = inner().Write(changes);
    if (changes.front().record.kind != kRunKind || left == 0) return written;
    --left;
    return Error{Code::kUnknownOutcome, "the reply was lost"};
  }

  int left = 0;
};

TEST_F(RunsTest, ALostReplyDoesNotHideThatARunOrAnAttemptWasWritten) {
  StoreThatLosesReplies losing(*store);
  Runs unlucky(losing, states, RealEnv(), &gate);
  losing.left = 1;
  const auto run = unlucky.Start(plan, plan.profiles.front(), kInputs);
  ASSERT_TRUE(run) << run.error().ToString();
  EXPECT_EQ(losing.left, 0);
  tasks.failing = {"Extract-1-B"};
  ASSERT_EQ(unlucky.Drive(*run, 2, {})->status, RunStatus::kFailed);
  tasks.failing = {};
  losing.left = 1;
  const auto again = unlucky.Resume("m", plan, {}, nothing, {});
  ASSERT_TRUE(again) << again.error().ToString();
  EXPECT_EQ(losing.left, 0);
  EXPECT_EQ(again->attempt, 2);
  EXPECT_EQ(unlucky.Drive(*again, 2, {})->status, RunStatus::kCompleted);
}

// Claims take effect, but the first answer is lost.
class StoreThatLosesAClaim final : public store::StoreWrapper {
 public:
  using store::StoreWrapper::StoreWrapper;

  Result<std::vector<store::Record>> Claim(const store::ClaimRequest& request) override {
    auto claimed = inner().Claim(request);
    if (request.kind != kRunKind || std::exchange(lost_, true)) return claimed;
    return Error{Code::kUnknownOutcome, "the answer was lost"};
  }

 private:
  bool lost_ = false;
};

TEST(RunsLease, ClaimOfUnknownOutcomeIsRepeated) {
  VirtualEnv env{WallTime(std::chrono::hours(1'000))};
  const auto truth = *store::OpenStore("memory:", env);
  StoreThatLosesAClaim store(*truth);
  Tasks tasks;
  states::States states(store, {&tasks}, {}, env);
  const Plan plan = TwoRanks();
  Runs gone(store, states, env);
  ASSERT_TRUE(gone.Start(plan, plan.profiles.front(), kInputs));
  env.Pass(std::chrono::minutes(5));
  const WallTime before = env.WallNow();
  Runs next(store, states, env);
  const auto run = next.Resume("m", plan, {}, nothing, {});
  ASSERT_TRUE(run) << run.error().ToString();
  // It is ours through the claim whose answer was lost, not through another one after that has
  // expired.
  EXPECT_LT(env.WallNow() - before, std::chrono::seconds(1));
}

}  // namespace
}  // namespace muster::plan
