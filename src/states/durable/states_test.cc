// Goal: executions survive what happens to the processes that drive them. Method: the real engine
// on the memory store, with executors that count, fail, wait or never answer, and a store that
// counts its commits. The simulator does the same with crashes at every call.

#include "muster/states.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <thread>

#include "core/json.h"
#include "core/json_equal.h"
#include "core/virtual_env.h"
#include "store/store_wrapper.h"

namespace muster::states {
namespace {

using std::chrono::seconds;

class FakeExecutor final : public TaskExecutor {
 public:
  using Answer = std::function<TaskOutcome(const TaskCall& call, TaskContext& context)>;
  explicit FakeExecutor(Answer start) : start_(std::move(start)) {}

  bool Runs(std::string_view resource) const override { return resource.starts_with("test:"); }
  TaskOutcome Start(const TaskCall& call, TaskContext& context) override {
    Count(call);
    return start_(call, context);
  }
  TaskOutcome Poll(const TaskCall& call, const Json& resume, TaskContext&) override {
    Count(call);
    if (resume["polls"] == 2) return TaskSuccess{resume};
    return TaskPending{{{"polls", resume["polls"].get<int>() + 1}}, milliseconds(5)};
  }
  void Cancel(const TaskCall&, const Json&, TaskContext&) override { ++cancels; }

  std::map<std::string, int> calls() {
    const std::lock_guard lock(mutex_);
    return calls_;
  }
  std::atomic<int> cancels = 0;

 private:
  void Count(const TaskCall& call) {
    const std::lock_guard lock(mutex_);
    ++calls_[call.token];
  }

  Answer start_;
  std::mutex mutex_;
  std::map<std::string, int> calls_;
};

Json Sorted(Json json) {
  for (Json& part : json) part = Sorted(std::move(part));
  std::sort(json.items().begin(), json.items().end());
  return json;
}

// Counts what costs a commit, and may give JSON back in another order, as databases do that keep it
// in their own way.
class WatchedStore final : public store::StoreWrapper {
 public:
  explicit WatchedStore(store::Store& store, bool reorders = false)
      : store::StoreWrapper(store), reorders_(reorders) {}
  Result<std::optional<store::Record>> Get(std::string_view kind, std::string_view key) override {
    auto record = inner().Get(kind, key);
    if (record && *record) Reorder(**record);
    return record;
  }
  Result<std::vector<store::Record>> Scan(std::string_view kind, std::string_view prefix,
                                          std::string_view after, int limit) override {
    auto records = inner().Scan(kind, prefix, after, limit);
    if (records)
      std::for_each(records->begin(), records->end(), [&](store::Record& it) { Reorder(it); });
    return records;
  }
  Result<std::vector<store::Written>> Write(std::span<const store::Change> changes) override {
    ++commits;
    if (before_write) before_write(changes);
    return inner().Write(changes);
  }
  Result<std::vector<store::Record>> Claim(const store::ClaimRequest& request) override {
    auto claimed = inner().Claim(request);
    if (claimed && !claimed->empty()) ++commits;
    if (claimed)
      std::for_each(claimed->begin(), claimed->end(), [&](store::Record& it) { Reorder(it); });
    return claimed;
  }
  std::atomic<int> commits = 0;
  std::function<void(std::span<const store::Change> changes)> before_write = {};

 private:
  void Reorder(store::Record& record) const {
    if (reorders_) record.body = Sorted(Json::parse(record.body)).dump(1);
  }

  const bool reorders_;
};

TaskOutcome Echo(const TaskCall& call, TaskContext&) { return TaskSuccess{call.input}; }

class StatesTest : public ::testing::Test {
 protected:
  static StatesOptions Quick() {
    return {.owner = "test", .lease = milliseconds(300), .idle_wait = milliseconds(5)};
  }

  void Open(FakeExecutor::Answer start, StatesOptions options = Quick()) {
    executor_ = std::make_unique<FakeExecutor>(std::move(start));
    states_ = std::make_unique<States>(*store_, std::vector<TaskExecutor*>{executor_.get()},
                                       std::move(options), RealEnv());
  }

  void Start(const std::string& states, const std::string& start_at,
             const std::string& input = "{}", const std::string& name = "run") {
    const Status started = states_->Start(
        {.name = name,
         .definition = "{\"StartAt\":\"" + start_at + "\",\"States\":{" + states + "}}",
         .input = input});
    ASSERT_TRUE(started) << started.error().message;
  }

  Execution Finish(const std::string& name = "run", int threads = 2) {
    {
      std::vector<std::jthread> workers;
      for (int i = 0; i < threads; ++i)
        workers.emplace_back([&] { EXPECT_TRUE(states_->Work(name, {})); });
    }
    return states_->Find(name).value().value();
  }

  std::vector<std::string> EventTypes(const std::string& name = "run") {
    std::vector<std::string> types;
    const Json history = states_->History(name).value();
    for (const Json& event : history) types.push_back(event["type"]);
    return types;
  }

  // The same, with what happened between two events of the execution itself in the order of the
  // alphabet: branches run side by side, so that their events may stand in any order.
  std::vector<std::string> EventTypesByPhase() {
    std::vector<std::string> types = EventTypes();
    const auto in_branch = [](const std::string& type) { return type.starts_with("Task"); };
    for (auto first = types.begin(); first != types.end();) {
      first = std::find_if(first, types.end(), in_branch);
      const auto last = std::find_if_not(first, types.end(), in_branch);
      std::sort(first, last);
      first = last;
    }
    return types;
  }

  std::unique_ptr<store::Store> store_ = store::OpenStore("memory:", RealEnv()).value();
  std::unique_ptr<FakeExecutor> executor_;
  std::unique_ptr<States> states_;
};

constexpr char kTask[] = R"("T":{"Type":"Task","Resource":"test:call","End":true})";

TEST_F(StatesTest, AnExecutorThatThrowsFailsItsTask) {
  Open([](const TaskCall& call, TaskContext&) -> TaskOutcome {
    return TaskSuccess{call.input.at("missing")};
  });
  Start(kTask, "T");
  const Execution ended = Finish();
  EXPECT_EQ(ended.status, ExecutionStatus::kFailed);
  EXPECT_EQ(ended.error, "States.Runtime");
  EXPECT_NE(ended.cause.find("the executor of 'test:call'"), std::string::npos) << ended.cause;
  EXPECT_NE(ended.cause.find("key 'missing' not found"), std::string::npos) << ended.cause;
}

TEST_F(StatesTest, ARecordOfANewerVersionIsRefusedWithBothVersions) {
  Open(Echo);
  Start(kTask, "T", "{}", "later");
  store::Record record = store_->Get("states", "later").value().value();
  Json body = Json::parse(record.body);
  EXPECT_EQ(body["v"], 1);
  body["v"] = 7;
  body["flow"]["wants"] = "an unknown field";
  record.body = ToJsonText(body);
  ASSERT_TRUE(store_->Write({{store::Change::Put(record, store::Due::AtOnce())}}));
  const auto found = states_->Find("later");
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().message,
            "the record of execution 'later' was written by a newer version of muster: in format "
            "7, and this one reads up to format 1");
  EXPECT_EQ(states_->List("", 10)->front().status, ExecutionStatus::kUnreadable);
}

TEST_F(StatesTest, ADamagedExecutionIsListedAndTheOthersGoOn) {
  Open(Echo);
  Start(kTask, "T", "{}", "bad");
  const std::string good = store_->Get("states", "bad").value()->body;
  const Json body = Json::parse(good);
  int executions = 0;
  int unreadable = 0;
  std::vector<std::string> damaged = {"[]", "null", "{}", "5"};
  for (const auto& [name, value] : body.items()) {
    for (const char* other : {"[]", "{}", "\"text\"", "-7", "99", "true", "null"}) {
      Json copy = body;
      copy[name] = Json::parse(other);
      damaged.push_back(ToJsonText(copy));
      for (const auto& [inner, part] : value.items()) {
        copy = body;
        copy[name][inner] = Json::parse(other);
        damaged.push_back(ToJsonText(copy));
      }
    }
  }
  // What the record says it waits for has to be there.
  for (int wants = 0; wants <= 5; ++wants) {
    Json copy = body;
    copy["flow"]["wants"] = wants;
    damaged.push_back(ToJsonText(copy));
  }
  for (const std::string& one : damaged) {
    store::Record record = store_->Get("states", "bad").value().value();
    record.body = one;
    record.owner.clear();
    record.attempt = 0;
    ASSERT_TRUE(store_->Write({{store::Change::Put(record, store::Due::AtOnce())}}));
    SCOPED_TRACE(one);
    const std::string name = "good" + std::to_string(++executions);
    Start(kTask, "T", "{}", name);
    EXPECT_EQ(Finish(name).status, ExecutionStatus::kSucceeded);
    const auto listed = states_->List("", 1'000);
    ASSERT_TRUE(listed) << listed.error().ToString();
    EXPECT_EQ(listed->size(), static_cast<size_t>(executions) + 1);
    if (listed->front().status == ExecutionStatus::kUnreadable) {
      ++unreadable;
      EXPECT_EQ(listed->front().name, "bad");
      EXPECT_NE(listed->front().cause.find("'bad'"), std::string::npos) << listed->front().cause;
    }
    // Whatever they say: nothing is thrown.
    static_cast<void>(states_->Find("bad"));
    static_cast<void>(states_->History("bad"));
    static_cast<void>(states_->Redrive("bad"));
  }
  EXPECT_GT(unreadable, 20);
}

TEST_F(StatesTest, OneTaskCostsFourCommits) {
  WatchedStore counting(*store_);
  FakeExecutor executor(Echo);
  States states(counting, {&executor}, Quick(), RealEnv());
  ASSERT_TRUE(states.Start(
      {.name = "first", .definition = std::string(R"({"StartAt":"T","States":{)") + kTask + "}}"}));
  ASSERT_TRUE(states.Work("first", {}));
  counting.commits = 0;
  ASSERT_TRUE(
      states.Start({.name = "second",
                    .definition = std::string(R"({"StartAt":"T","States":{)") + kTask + "}}",
                    .input = R"({"a":1})"}));
  ASSERT_TRUE(states.Work("second", {}));
  EXPECT_LE(counting.commits, 4);
  EXPECT_EQ(states.Find("second").value()->output, R"({"a":1})");
}

TEST_F(StatesTest, StatesWithoutEffectsCostNoCommit) {
  WatchedStore counting(*store_);
  States states(counting, {}, Quick(), RealEnv());
  std::string chain;
  for (int i = 0; i < 20; ++i)
    chain += "\"P" + std::to_string(i) + "\":{\"Type\":\"Pass\",\"Next\":\"P" +
             std::to_string(i + 1) + "\"},";
  ASSERT_TRUE(states.Start(
      {.name = "run",
       .definition = R"({"StartAt":"P0","States":{)" + chain + R"("P20":{"Type":"Succeed"}}})"}));
  ASSERT_TRUE(states.Work("run", {}));
  EXPECT_EQ(counting.commits, 3);
  EXPECT_EQ(states.Find("run").value()->status, ExecutionStatus::kSucceeded);
}

TEST_F(StatesTest, HistoryHasTheEventsOfAws) {
  Open(Echo);
  Start(R"("P":{"Type":"Pass","Next":"T"},)" + std::string(kTask), "P");
  EXPECT_EQ(Finish().status, ExecutionStatus::kSucceeded);
  const std::vector<std::string> expected = {
      "ExecutionStarted", "PassStateEntered", "PassStateExited",
      "TaskStateEntered", "TaskScheduled",    "TaskStarted",
      "TaskSucceeded",    "TaskStateExited",  "ExecutionSucceeded"};
  EXPECT_EQ(EventTypes(), expected);
}

// As if the clock had been set back by an hour after the first two events of every flow.
TEST_F(StatesTest, AHistoryIsInOrderThoughTheClockWasSetBack) {
  Open([](const TaskCall& call, TaskContext&) -> TaskOutcome {
    if (call.state == "B" && call.execution == "run" && call.token.find("r1") == std::string::npos)
      return TaskFailure{"Busy", ""};
    return TaskSuccess{};
  });
  Start(
      R"("P":{"Type":"Parallel","Branches":[{"StartAt":"A","States":{"A":{"Type":"Task","Resource":"test:a","End":true}}},
        {"StartAt":"B","States":{"B":{"Type":"Task","Resource":"test:b","End":true}}}],
        "Retry":[{"ErrorEquals":["Busy"],"IntervalSeconds":1}],"Next":"C"},
        "C":{"Type":"Task","Resource":"test:c","End":true})",
      "P");
  ASSERT_EQ(Finish("run", 1).status, ExecutionStatus::kSucceeded);
  const std::vector<std::string> in_order = EventTypesByPhase();
  const auto records = store_->Scan("states", "", "", 100).value();
  for (store::Record record : records) {
    Json body = Json::parse(record.body);
    for (size_t i = 2; i < body["events"].size(); ++i) {
      Json& time = body["events"][i]["time"];
      time = time.get<int64_t>() - 3'600'000;
    }
    record.body = ToJsonText(body);
    ASSERT_TRUE(store_->Write({{store::Change::Put(record, store::Due::Unchanged())}}));
  }
  EXPECT_EQ(EventTypesByPhase(), in_order);
  const Json history = states_->History("run").value();
  for (const Json& event : history) {
    EXPECT_LT(event["previousEventId"].get<int64_t>(), event["id"].get<int64_t>())
        << "an event comes before what led to it: " << ToJsonText(event);
  }
}

TEST_F(StatesTest, ParallelAndMapRunAsRecordsOfTheirOwn) {
  Open(Echo);
  Start(
      R"("P":{"Type":"Parallel","Branches":[{"StartAt":"A","States":{"A":{"Type":"Task","Resource":"test:a","End":true}}},
        {"StartAt":"B","States":{"B":{"Type":"Pass","Result":2,"End":true}}}],"ResultPath":"$.p","Next":"M"},
        "M":{"Type":"Map","ItemsPath":"$.items","MaxConcurrency":3,"ResultPath":"$.m","ItemProcessor":{"StartAt":"I","States":{
        "I":{"Type":"Task","Resource":"test:i","End":true}}},"End":true})",
      "P", R"({"items":[1,2,3,4,5,6,7]})");
  const Execution ended = Finish("run", 3);
  ASSERT_EQ(ended.status, ExecutionStatus::kSucceeded) << ended.cause;
  const Json output = Json::parse(ended.output);
  EXPECT_EQ(output["m"], Json::parse("[1,2,3,4,5,6,7]"));
  EXPECT_EQ(output["p"][1], 2);
  for (const auto& [token, calls] : executor_->calls()) EXPECT_EQ(calls, 1) << token;
}

TEST_F(StatesTest, RecordsMayComeBackInAnotherOrder) {
  const std::string definition =
      R"({"StartAt":"V","States":{
          "V":{"Type":"Pass","Assign":{"keep":[1,{"b":2,"a":"\"x\""}]},"Next":"M"},
          "M":{"Type":"Map","ItemProcessor":{"StartAt":"T","States":{)" +
      std::string(kTask) +
      R"(}},"Next":"F"},
          "F":{"Type":"Task","Resource":"test:fail","Catch":[{"ErrorEquals":["States.ALL"],"Next":"E"}],"End":true},
          "E":{"Type":"Pass","Parameters":{"kept.$":"$keep","error.$":"$.Error"},"End":true}}})";
  std::vector<std::string> outputs;
  std::vector<size_t> events;
  for (const bool reorders : {false, true}) {
    WatchedStore watched(*store_, reorders);
    FakeExecutor executor([](const TaskCall& call, TaskContext&) -> TaskOutcome {
      if (call.resource == "test:fail") return TaskFailure{"Bad", "on \"purpose\""};
      return TaskSuccess{call.input};
    });
    States states(watched, {&executor}, Quick(), RealEnv());
    const std::string name = reorders ? "reordered" : "plain";
    const Status started =
        states.Start({.name = name, .definition = definition, .input = R"([{"n":1},{"n":2}])"});
    ASSERT_TRUE(started) << started.error().message;
    ASSERT_TRUE(states.Work(name, {}));
    const Execution ended = states.Find(name).value().value();
    EXPECT_EQ(ended.status, ExecutionStatus::kSucceeded) << ended.cause;
    outputs.push_back(ended.output);
    events.push_back(states.History(name).value().size());
  }
  EXPECT_EQ(outputs[0], R"({"kept":[1,{"b":2,"a":"\"x\""}],"error":"Bad"})");
  EXPECT_TRUE(JsonEqual(Json::parse(outputs[0]), Json::parse(outputs[1])));
  EXPECT_EQ(events[0], events[1]);
}

TEST_F(StatesTest, AFailedBranchEndsItsSiblings) {
  Open([](const TaskCall& call, TaskContext& context) -> TaskOutcome {
    if (call.state == "Bad") return TaskFailure{"Bad", "it is"};
    while (context.KeepAlive()) context.env().Sleep(milliseconds(5), {});
    return TaskFailure{"Cut", ""};
  });
  Start(
      R"("P":{"Type":"Parallel","Branches":[{"StartAt":"Bad","States":{"Bad":{"Type":"Task","Resource":"test:a","End":true}}},
        {"StartAt":"Long","States":{"Long":{"Type":"Task","Resource":"test:b","End":true}}}],"Catch":[{"ErrorEquals":["Bad"],"Next":"H"}],"End":true},
        "H":{"Type":"Pass","End":true})",
      "P");
  const Execution ended = Finish("run", 3);
  EXPECT_EQ(ended.status, ExecutionStatus::kSucceeded);
  EXPECT_EQ(ended.output, R"({"Error":"Bad","Cause":"it is"})");
}

TEST_F(StatesTest, ACallThatWasCutShortIsMadeAgainWithItsToken) {
  std::stop_source stop;
  std::atomic<int> tries = 0;
  Open([&](const TaskCall& call, TaskContext& context) -> TaskOutcome {
    if (++tries > 1) return TaskSuccess{call.token};
    stop.request_stop();
    while (context.KeepAlive()) context.env().Sleep(milliseconds(1), {});
    return TaskFailure{"Cut", ""};
  });
  Start(kTask, "T");
  ASSERT_TRUE(states_->Work("", stop.get_token()));
  EXPECT_EQ(states_->Find("run").value()->status, ExecutionStatus::kRunning);
  const Execution ended = Finish();
  EXPECT_EQ(ended.status, ExecutionStatus::kSucceeded);
  ASSERT_EQ(executor_->calls().size(), 1u);
  EXPECT_EQ(executor_->calls().begin()->second, 2);
}

TEST_F(StatesTest, ALongCallKeepsItsExecution) {
  Open([](const TaskCall&, TaskContext& context) -> TaskOutcome {
    for (int i = 0; i < 40; ++i) {
      if (!context.KeepAlive()) return TaskFailure{"Lost", ""};
      context.env().Sleep(milliseconds(20), {});
    }
    return TaskSuccess{"done"};
  });
  Start(kTask, "T");
  EXPECT_EQ(Finish().status, ExecutionStatus::kSucceeded);
  EXPECT_EQ(executor_->calls().begin()->second, 1);
}

TEST_F(StatesTest, APendingCallIsPolledAndHoldsNoThread) {
  Open([](const TaskCall&, TaskContext&) -> TaskOutcome {
    return TaskPending{{{"polls", 0}}, milliseconds(5)};
  });
  Start(R"("T":{"Type":"Task","Resource":"test:job.sync","End":true})", "T");
  EXPECT_EQ(Finish("run", 1).output, R"({"polls":2})");
  const auto types = EventTypes();
  EXPECT_EQ(std::count(types.begin(), types.end(), "TaskSubmitted"), 1);
}

TEST_F(StatesTest, ATaskTimesOutAndWhatItStartedIsCancelled) {
  Open([](const TaskCall&, TaskContext&) -> TaskOutcome {
    return TaskPending{{{"polls", -1000000}}, milliseconds(50)};
  });
  Start(R"("T":{"Type":"Task","Resource":"test:job.sync","TimeoutSeconds":1,"End":true})", "T");
  const Execution ended = Finish();
  EXPECT_EQ(ended.status, ExecutionStatus::kFailed);
  EXPECT_EQ(ended.error, "States.Timeout");
  EXPECT_EQ(executor_->cancels, 1);
}

TEST_F(StatesTest, TheFirstAnswerOfACallbackCounts) {
  std::atomic<bool> asked = false;
  std::string token;
  Open([&](const TaskCall& call, TaskContext&) -> TaskOutcome {
    token = call.input["token"];
    asked = true;
    return TaskSuccess{nullptr};
  });
  Start(
      R"("T":{"Type":"Task","Resource":"test:ask.waitForTaskToken","Parameters":{"token.$":"$$.Task.Token"},"End":true})",
      "T");
  std::jthread worker([&] { EXPECT_TRUE(states_->Work("run", {})); });
  while (!asked) std::this_thread::yield();
  EXPECT_EQ(states_->SendTaskSuccess("run::9:0", "1").error().code, Code::kNotFound);
  ASSERT_TRUE(states_->SendTaskSuccess(token, R"({"yes":true})"));
  const Status second = states_->SendTaskFailure(token, "E", "C");
  EXPECT_FALSE(second);
  worker.join();
  EXPECT_EQ(states_->Find("run").value()->output, R"({"yes":true})");
}

TEST_F(StatesTest, ACallbackWithoutHeartbeatsTimesOut) {
  Open([](const TaskCall&, TaskContext&) -> TaskOutcome { return TaskSuccess{nullptr}; });
  Start(
      R"("T":{"Type":"Task","Resource":"test:ask.waitForTaskToken","HeartbeatSeconds":1,"TimeoutSeconds":60,"End":true})",
      "T");
  EXPECT_EQ(Finish().error, "States.HeartbeatTimeout");
}

TEST_F(StatesTest, AStoppedExecutionStaysStopped) {
  Open(Echo);
  Start(R"("W":{"Type":"Wait","Seconds":1000,"Next":"T"},)" + std::string(kTask), "W");
  std::stop_source stop;
  std::jthread worker([&] { EXPECT_TRUE(states_->Work("", stop.get_token())); });
  while (states_->Find("run").value()->state != "W" || EventTypes().size() < 2)
    std::this_thread::yield();
  ASSERT_TRUE(states_->Stop("run", "Enough", "by hand"));
  EXPECT_EQ(states_->Stop("run", "", "").error().code, Code::kConflict);
  stop.request_stop();
  const Execution ended = states_->Find("run").value().value();
  EXPECT_EQ(ended.status, ExecutionStatus::kAborted);
  EXPECT_EQ(ended.error, "Enough");
  EXPECT_EQ(EventTypes().back(), "ExecutionAborted");
}

// The lease is long: its renewal notices a stop far too late.
TEST_F(StatesTest, AStopEndsARunningCallWithinSeconds) {
  std::atomic<bool> called = false;
  Open(
      [&](const TaskCall&, TaskContext& context) -> TaskOutcome {
        called = true;
        const MonoTime begun = context.env().MonoNow();
        while (context.KeepAlive() && context.env().MonoNow() - begun < seconds(10))
          context.env().Sleep(milliseconds(5), {});
        return TaskFailure{"Cut", ""};
      },
      {.owner = "test", .lease = seconds(60), .idle_wait = milliseconds(5)});
  Start(kTask, "T");
  const MonoTime begun = RealEnv().MonoNow();
  std::jthread worker([&] { EXPECT_TRUE(states_->Work("run", {})); });
  while (!called) std::this_thread::yield();
  ASSERT_TRUE(states_->Stop("run", "Enough", "by hand"));
  worker.join();
  EXPECT_LT(RealEnv().MonoNow() - begun, seconds(5));
}

// Stops the execution at the first write of branches: before it, or after it but before the
// parent's record counts them.
class StopAtBranches final : public store::StoreWrapper {
 public:
  StopAtBranches(store::Store& inner, bool before, std::function<void()> stop)
      : StoreWrapper(inner), before_(before), stop_(std::move(stop)) {}

  Result<std::vector<store::Written>> Write(std::span<const store::Change> changes) override {
    const bool now = !changes.empty() && changes.front().record.key.starts_with("run/") &&
                     !stopped_.exchange(true);
    if (now && before_) stop_();
    auto written = inner().Write(changes);
    if (now && !before_) stop_();
    return written;
  }

 private:
  const bool before_;
  const std::function<void()> stop_;
  std::atomic<bool> stopped_ = false;
};

TEST_F(StatesTest, AStopEndsBranchesThatTheirParentHasNotCounted) {
  for (const bool before : {false, true}) {
    SCOPED_TRACE(before);
    store_ = store::OpenStore("memory:", RealEnv()).value();
    StopAtBranches stops(*store_, before,
                         [&] { ASSERT_TRUE(states_->Stop("run", "Enough", "by hand")); });
    std::atomic<int> unnoticed = 0;
    FakeExecutor executor([&](const TaskCall&, TaskContext& context) -> TaskOutcome {
      const MonoTime begun = context.env().MonoNow();
      while (context.KeepAlive()) {
        if (context.env().MonoNow() - begun >= seconds(5)) return ++unnoticed, TaskSuccess{};
        context.env().Sleep(milliseconds(5), {});
      }
      return TaskFailure{"Cut", ""};
    });
    states_ = std::make_unique<States>(
        stops, std::vector<TaskExecutor*>{&executor},
        StatesOptions{.owner = "test", .lease = seconds(60), .idle_wait = milliseconds(5)},
        RealEnv());
    Start(
        R"("P":{"Type":"Parallel","Branches":[{"StartAt":"A","States":{"A":{"Type":"Task","Resource":"test:a","End":true}}},
        {"StartAt":"B","States":{"B":{"Type":"Task","Resource":"test:b","End":true}}}],"End":true})",
        "P");
    EXPECT_EQ(Finish("run", 3).status, ExecutionStatus::kAborted);
    EXPECT_EQ(unnoticed, 0);
    states_.reset();
  }
}

// Its process stands still for an hour after the first claim of several flows.
class SlowClaim final : public store::StoreWrapper {
 public:
  SlowClaim(store::Store& inner, VirtualEnv& env) : StoreWrapper(inner), env_(env) {}

  Result<std::vector<store::Record>> Claim(const store::ClaimRequest& request) override {
    auto claimed = inner().Claim(request);
    is_late_ = !slept && claimed && claimed->size() > 1;
    if (is_late_) env_.Pass(std::chrono::hours(1));
    slept |= is_late_;
    return claimed;
  }
  Result<std::vector<store::Written>> Write(std::span<const store::Change> changes) override {
    if (is_late_) ++late_writes;
    return inner().Write(changes);
  }

  bool slept = false;
  int late_writes = 0;

 private:
  VirtualEnv& env_;
  bool is_late_ = false;  // what it has claimed last
};

TEST_F(StatesTest, NothingIsWrittenPastTheLeasesOfFlowsClaimedTogether) {
  VirtualEnv env;
  const auto store = store::OpenStore("memory:", env).value();
  SlowClaim slow(*store, env);
  FakeExecutor executor(Echo);
  states_ = std::make_unique<States>(slow, std::vector<TaskExecutor*>{&executor}, Quick(), env);
  Start(
      R"("M":{"Type":"Map","End":true,"ItemProcessor":{"StartAt":"P","States":{"P":{"Type":"Pass","End":true}}}})",
      "M", "[1,2,3,4,5,6,7,8]");
  EXPECT_EQ(Finish("run", 1).status, ExecutionStatus::kSucceeded);
  EXPECT_TRUE(slow.slept);
  EXPECT_EQ(slow.late_writes, 0);
  states_.reset();
}

TEST_F(StatesTest, RedriveRunsOnlyWhatDidNotSucceed) {
  std::atomic<bool> fixed = false;
  Open([&](const TaskCall& call, TaskContext&) -> TaskOutcome {
    if (call.input == 2 && !fixed) return TaskFailure{"Broken", ""};
    return TaskSuccess{call.input};
  });
  Start(R"("M":{"Type":"Map","MaxConcurrency":1,"ItemProcessor":{"StartAt":"I","States":{
        "I":{"Type":"Task","Resource":"test:i","End":true}}},"End":true})",
        "M", "[1,2,3]");
  EXPECT_EQ(Finish().error, "Broken");
  EXPECT_EQ(states_->Redrive("run").has_value(), true);
  fixed = true;
  const Execution ended = Finish();
  EXPECT_EQ(ended.status, ExecutionStatus::kSucceeded) << ended.cause;
  EXPECT_EQ(ended.output, "[1,2,3]");
  EXPECT_EQ(ended.redrives, 1);
  int calls_of_first = 0;
  for (const auto& [token, calls] : executor_->calls())
    calls_of_first += token.find(".00000000:") != std::string::npos ? calls : 0;
  EXPECT_EQ(calls_of_first, 1);
  EXPECT_EQ(states_->Redrive("run").error().code, Code::kConflict);
}

TEST_F(StatesTest, RedriveResetsABranchWhoseRecordChangesMeanwhile) {
  std::atomic<bool> fixed = false;
  const auto answer = [&](const TaskCall& call, TaskContext&) -> TaskOutcome {
    if (call.input == 2 && !fixed) return TaskFailure{"Broken", ""};
    return TaskSuccess{call.input};
  };
  WatchedStore watched(*store_);
  executor_ = std::make_unique<FakeExecutor>(answer);
  states_ = std::make_unique<States>(watched, std::vector<TaskExecutor*>{executor_.get()}, Quick(),
                                     RealEnv());
  Start(R"("M":{"Type":"Map","MaxConcurrency":1,"ItemProcessor":{"StartAt":"I","States":{
        "I":{"Type":"Task","Resource":"test:i","End":true}}},"End":true})",
        "M", "[1,2,3]");
  ASSERT_EQ(Finish().error, "Broken");
  int raced = 0;
  watched.before_write = [&](std::span<const store::Change> changes) {
    const store::Record& record = changes.front().record;
    if (!record.key.starts_with("run/") || raced++ > 0) return;
    const store::Record stored = store_->Get(record.kind, record.key).value().value();
    ASSERT_TRUE(store_->Write({{store::Change::Put(stored, store::Due::Unchanged())}}));
  };
  ASSERT_TRUE(states_->Redrive("run"));
  EXPECT_GT(raced, 1) << "it was tried again";
  watched.before_write = {};
  fixed = true;
  EXPECT_EQ(Finish().status, ExecutionStatus::kSucceeded);
  states_.reset();
}

TEST_F(StatesTest, StartingAgainIsFineAndSomethingElseIsRefused) {
  Open(Echo);
  Start(kTask, "T", R"({"a":1})");
  Start(kTask, "T", R"({"a":1})");
  const Status other =
      states_->Start({.name = "run",
                      .definition = std::string(R"({"StartAt":"T","States":{)") + kTask + "}}",
                      .input = "{}"});
  EXPECT_EQ(other.error().code, Code::kConflict);
  EXPECT_EQ(states_->Start({.name = "bad name", .definition = "{}"}).error().code, Code::kInvalid);
  EXPECT_EQ(states_->Start({.name = "x", .definition = "{}", .origin = "f.json"})
                .error()
                .message.substr(0, 11),
            "f.json:1:1:");
}

TEST_F(StatesTest, LargeValuesAndLongHistoriesAreKeptInParts) {
  Open(Echo);
  const std::string big(120'000, 'x');
  std::string chain;
  for (int i = 0; i < 60; ++i)
    chain += "\"P" + std::to_string(i) + "\":{\"Type\":\"Pass\",\"Next\":\"P" +
             std::to_string(i + 1) + "\"},";
  Start(chain + R"("P60":{"Type":"Pass","Assign":{"v.$":"$"},"Next":"T"},)" + kTask, "P0",
        "\"" + big + "\"");
  const Execution ended = Finish();
  ASSERT_EQ(ended.status, ExecutionStatus::kSucceeded) << ended.cause;
  EXPECT_EQ(ended.output.size(), big.size() + 2);
  EXPECT_EQ(EventTypes().size(), 1 + 61 * 2 + 5 + 1u);
}

TEST_F(StatesTest, AMapOverManyItemsIsDrivenByManyThreads) {
  Open(Echo, {.owner = "test", .idle_wait = milliseconds(5)});
  Json items = Json::array();
  for (int i = 0; i < 1'200; ++i) items.push_back(i);
  Start(
      R"("M":{"Type":"Map","ItemProcessor":{"ProcessorConfig":{"Mode":"DISTRIBUTED","ExecutionType":"STANDARD"},"StartAt":"I","States":{
        "I":{"Type":"Pass","End":true}}},"End":true})",
      "M", items.dump());
  const Execution ended = Finish("run", 3);
  ASSERT_EQ(ended.status, ExecutionStatus::kSucceeded) << ended.cause;
  EXPECT_EQ(Json::parse(ended.output), items);
}

TEST_F(StatesTest, AnExecutorThatTakesProcessesDownFailsInTheEnd) {
  StatesOptions options = Quick();
  options.max_attempts = 2;
  Open(Echo, options);
  Start(kTask, "T");
  // As if a process had claimed it, written the start of the call, and gone: three times.
  for (int i = 0; i < 4; ++i) {
    store::ClaimRequest request{.kind = "states",
                                .queue = "default",
                                .owner = "gone",
                                .claim_id = std::to_string(i),
                                .lease = milliseconds(1),
                                .max_lease = milliseconds(1)};
    auto claimed = store_->Claim(request).value();
    ASSERT_EQ(claimed.size(), 1u);
    if (i == 0) {
      FakeExecutor never(
          [](const TaskCall&, TaskContext&) -> TaskOutcome { return TaskSuccess{1}; });
      store::Record record = claimed.front();
      Json body = Json::parse(record.body);
      body["flow"]["inside"] = true;
      body["flow"]["wants"] = 1;
      body["flow"]["entry"] = 1;
      body["flow"]["task"] = {{"resource", "test:call"}, {"token", "run::1:0"}, {"input", 1}};
      record.body = body.dump();
      const store::Change change = store::Change::Put(record, store::Due::AtOnce());
      ASSERT_TRUE(store_->Write({&change, 1}).value().front().applied);
    }
    while (store_->Now().value() < *store_->Get("states", "run").value()->due)
      std::this_thread::yield();
  }
  const Execution ended = Finish();
  EXPECT_EQ(ended.error, "States.TaskFailed");
  EXPECT_TRUE(executor_->calls().empty());
}

}  // namespace
}  // namespace muster::states
