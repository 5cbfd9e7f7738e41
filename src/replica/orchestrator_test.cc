// A replica set with real workers in threads, on real databases: each event is handled once and in
// stream order, whatever happens to the workers.

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>

#include "core/log.h"
#include "core/virtual_env.h"
#include "muster/replica.h"
#include "replica/definitions.h"
#include "replica/member.h"
#include "replica/operations.h"
#include "replica/orchestrator.h"
#include "replica/rebuild.h"
#include "replica/sql_projection.h"
#include "store/backends.h"
#include "support/await.h"
#include "support/dynamodb_server.h"
#include "support/opensearch_server.h"
#include "support/postgres_server.h"
#include "support/shared_server.h"
#include "support/temporary_folder.h"

namespace muster::replica {
namespace {

using namespace std::chrono_literals;
using testing::Await;

const bool kQuiet = (SetLogging(Level::kOff, LogFormat::kText), true);

RebuildObserver nothing;

class Remaining final : public RebuildObserver {
 public:
  int64_t left = -1;
  void Advanced(int64_t now) override { left = now; }
};

// Records every event. The table's key makes a repeat fail.
class Recorder final : public Projection {
 public:
  explicit Recorder(std::string name = "record") : name_(std::move(name)) {}

  const std::string& name() const override { return name_; }

  Status SetUp(Transaction& transaction, int version) override {
    MUSTER_TRY(
        transaction.Execute("CREATE TABLE IF NOT EXISTS " + Effects() +
                            " (stream TEXT, version BIGINT, PRIMARY KEY (stream, version))"));
    return transaction.Execute("CREATE TABLE IF NOT EXISTS " + Table(version) +
                               " (stream TEXT, version BIGINT, PRIMARY KEY (stream, version))");
  }
  Status Clear(Transaction& transaction, int version) override {
    return transaction.Execute("DELETE FROM " + Table(version));
  }
  Status Drop(Transaction& transaction, int version) override {
    return transaction.Execute("DROP TABLE IF EXISTS " + Table(version));
  }
  Result<std::unique_ptr<Processor>> Build(const ReplicaPartition& partition) override {
    return std::make_unique<FollowerThread>(*this, partition);
  }

  std::string Table(int version) const { return name_ + "_" + std::to_string(version); }
  std::string Effects() const { return name_ + "_effects"; }  // of all versions

  std::atomic<int64_t> handled = 0;
  std::function<void(const events::Event&)> before = {};  // may throw or hang
  bool has_effects = false;                               // records which events had side effects

 private:
  class FollowerThread final : public Processor {
   public:
    FollowerThread(Recorder& recorder, const ReplicaPartition& partition)
        : recorder_(recorder),
          version_(partition.version),
          side_effects_(partition.side_effects && recorder.has_effects) {}
    Status Handle(std::span<const events::Event> events, Transaction& transaction) override {
      for (const events::Event& event : events) {
        if (recorder_.before) recorder_.before(event);
        // The previous event of the stream must be there: an out-of-order event inserts nothing,
        // and is missing in the end.
        MUSTER_TRY(transaction.Execute(
            "INSERT INTO " + recorder_.Table(version_) +
                " SELECT CAST($1 AS TEXT), CAST($2 AS BIGINT) WHERE CAST($2 AS BIGINT) = 1 OR "
                "EXISTS (SELECT 1 FROM " +
                recorder_.Table(version_) +
                " WHERE stream = CAST($1 AS TEXT) AND version = CAST($2 AS BIGINT) - 1)",
            {event.stream, std::to_string(event.version)}));
        if (!side_effects_) continue;
        MUSTER_TRY(transaction.Execute(
            "INSERT INTO " + recorder_.Effects() + " VALUES (CAST($1 AS TEXT), CAST($2 AS BIGINT))",
            {event.stream, std::to_string(event.version)}));
      }
      recorder_.handled += static_cast<int64_t>(events.size());
      return {};
    }

   private:
    Recorder& recorder_;
    const int version_;
    const bool side_effects_;
  };

  const std::string name_;
};

class ReplicaSets : public ::testing::TestWithParam<std::string> {
 protected:
  struct Running {
    std::shared_ptr<Recorder> recorder;
    std::unique_ptr<Orchestrator> orchestrator;
    Status ended = {};
    std::jthread thread;
  };

  void SetUp() override {
    if (GetParam() != "postgresql") {
      url_ = "sqlite:" + folder_.path() + "/set.db";
    } else {
      const std::string reason = testing::PostgresServer::Unavailable();
      if (!reason.empty()) GTEST_SKIP() << "no PostgreSQL: " << reason;
      const auto& server = testing::PostgresServer::Shared();
      const std::string database = server.database() + "_" + RealEnv().NewId().substr(0, 12);
      server.Exec("CREATE DATABASE " + database);
      url_ = server.Url();
      url_.replace(url_.rfind('/') + 1, std::string::npos, database);
    }
    store_ = OpenOwnStore();
    log_ = Must(events::OpenEventLog(url_, {.slots = 16}, RealEnv()));
    model_ = Must(OpenReadModel(url_, RealEnv()));
  }
  // The workers' store: beside log and read model by default.
  virtual std::unique_ptr<store::Store> OpenOwnStore() {
    return Must(store::OpenStore(url_, RealEnv()));
  }

  void TearDown() override {
    workers_.clear();
    model_.reset();
    log_.reset();
    store_.reset();
  }

  template <class T>
  static T Must(Result<T> result) {
    if (!result) throw std::runtime_error(result.error().ToString());
    return *std::move(result);
  }

  ReplicaOptions Options(const std::string& set = "set") const {
    ReplicaOptions options;
    options.set = set;
    options.worker = "w";
    options.strategy = strategy_;
    options.batch = 20;
    options.max_attempts = 2;
    options.retry_delay = 10ms;
    return options;
  }

  Running& Start(const ReplicaOptions& options,
                 std::function<void(const events::Event&)> before = {},
                 const std::string& projection = "record") {
    auto running = std::make_unique<Running>();
    running->recorder = std::make_shared<Recorder>(projection);
    running->recorder->before = std::move(before);
    running->recorder->has_effects = has_effects_;
    running->orchestrator = Must(
        NewOrchestrator(*store_, *log_, url_, {running->recorder}, options, observer_, RealEnv()));
    running->thread = std::jthread([own = running.get()](std::stop_token stop) {
      own->ended = own->orchestrator->Run(std::move(stop));
    });
    return *workers_.emplace_back(std::move(running));
  }
  Running& Start() { return Start(Options()); }

  Running& StartWith(const std::shared_ptr<Projection>& projection) {
    auto running = std::make_unique<Running>();
    running->orchestrator =
        Must(NewOrchestrator(*store_, *log_, url_, {projection}, Options(), observer_, RealEnv()));
    running->thread = std::jthread([own = running.get()](std::stop_token stop) {
      own->ended = own->orchestrator->Run(std::move(stop));
    });
    return *workers_.emplace_back(std::move(running));
  }

  static void Stop(Running& running) {
    running.thread.request_stop();
    if (running.thread.joinable()) running.thread.join();
    EXPECT_TRUE(running.ended) << running.ended.error().ToString();
  }

  void Append(int events, int streams = 40) {
    for (int i = 0; i < events; i += streams) {
      std::vector<events::StreamAppend> appends;
      for (int s = 0; s < streams && i + s < events; ++s) {
        appends.push_back({"stream-" + std::to_string(s), events::kAnyVersion, {{"T"}}});
      }
      ASSERT_TRUE(log_->Append(appends));
      appended_ += static_cast<int>(appends.size());
    }
  }

  std::string Count(const std::string& table = "record_1") {
    auto transaction = Must(model_->Begin());
    auto rows = transaction->Query("SELECT count(*) FROM " + table, {});
    return rows ? rows->front().front().value_or("") : rows.error().message;
  }

  bool AwaitAll(const std::string& table = "record_1") {
    return Await([&] { return Count(table) == std::to_string(appended_); });
  }
  bool AwaitRunning(size_t partitions, const std::string& set = "set") {
    return Await([&] {
      auto view = ReadSet(*store_, set);
      if (!view || view->generation.phase != Generation::Phase::kRunning) return false;
      if (view->generation.assignment.members.size() != partitions) return false;
      size_t running = 0;
      for (const auto& [id, member] : view->members) {
        running += member.state.phase == MemberState::Phase::kRunning &&
                   member.state.generation == view->generation.number;
      }
      return running == partitions;
    });
  }

  // Counted and hashed, as an operator would.
  void ExpectCleanAudit(const std::string& set = "set", const std::string& projection = "record") {
    auto audit = Audit(*log_, *model_, {set, projection, 1});
    ASSERT_TRUE(audit) << audit.error().ToString();
    EXPECT_TRUE(audit->wrong_slots.empty());
    EXPECT_EQ(audit->handled, appended_);
  }

  // Three workers join while events come in, each handles some, and one leaves.
  void JoinAndLeave(Strategy strategy) {
    strategy_ = strategy;
    workers_.clear();
    std::jthread appender([&](std::stop_token stop) {
      auto own = Must(events::OpenEventLog(url_, {}, RealEnv()));
      while (!stop.stop_requested()) {
        std::vector<events::StreamAppend> appends;
        for (int s = 0; s < 40; ++s) {
          appends.push_back({"stream-" + std::to_string(s), events::kAnyVersion, {{"T"}}});
        }
        if (own->Append(appends)) appended_ += 40;
        RealEnv().Sleep(10ms, stop);
      }
    });
    Running& a = Start();
    ASSERT_TRUE(AwaitRunning(1));
    Running& b = Start();
    ASSERT_TRUE(AwaitRunning(2));
    Running& c = Start();
    ASSERT_TRUE(AwaitRunning(3));
    for (Running* worker : {&a, &b, &c}) {
      const int64_t before = worker->recorder->handled;
      EXPECT_TRUE(Await([&] { return worker->recorder->handled > before; }));
    }
    Stop(b);
    ASSERT_TRUE(AwaitRunning(2));
    appender.request_stop();
    appender.join();
    ASSERT_TRUE(AwaitAll()) << Count();
    Stop(a);
    Stop(c);
    ExpectCleanAudit();
  }

  Strategy strategy_ = Strategy::kRecreate;
  ReplicaObserver observer_;
  testing::TemporaryFolder folder_;
  std::string url_;
  std::unique_ptr<store::Store> store_;
  std::unique_ptr<events::EventLog> log_;
  std::unique_ptr<ReadModel> model_;
  std::vector<std::unique_ptr<Running>> workers_;
  int appended_ = 0;
  bool has_effects_ = false;
};

TEST_P(ReplicaSets, SingleWorkerHandlesEverythingAndContinuesAfterARestart) {
  Append(400);
  Running& first = Start();
  ASSERT_TRUE(AwaitAll()) << Count();
  EXPECT_EQ(first.recorder->handled, 400);
  Stop(first);
  Append(200);
  Running& second = Start();
  ASSERT_TRUE(AwaitAll()) << Count();
  EXPECT_EQ(second.recorder->handled, 200);
  ExpectCleanAudit();
}

TEST_P(ReplicaSets, WorkersShareTheEventsWhileTheyJoinAndLeave) {
  for (const Strategy strategy : {Strategy::kRecreate, Strategy::kIncremental}) {
    JoinAndLeave(strategy);
  }
}

TEST_P(ReplicaSets, DeadWorkerIsCleanedUpWhileOthersRun) {
  Append(100);
  // A member whose process has died: it never renews.
  ReplicaOptions options = Options();
  Member ghost(*store_, RealEnv(), options, log_->slots(), {"record"});
  ASSERT_TRUE(ghost.Register());
  Start();
  ASSERT_TRUE(AwaitAll()) << Count();
  ASSERT_TRUE(AwaitRunning(1));
  auto view = ReadSet(*store_, "set");
  ASSERT_TRUE(view);
  EXPECT_EQ(view->members.at(ghost.id()).state.phase, MemberState::Phase::kDead);
  // Its later messages are ignored.
  const Status revived = ghost.Say(MemberState::Phase::kRunning, view->generation.number);
  ASSERT_FALSE(revived);
  EXPECT_EQ(revived.error().code, Code::kLeaseLost);
}

TEST_P(ReplicaSets, StopDuringCoordinationLeavesTheSetInOrder) {
  Running& worker = Start();
  ASSERT_TRUE(Await([&] {
    auto view = ReadSet(*store_, "set");
    return view && !view->members.empty();
  }));
  Stop(worker);
  auto view = ReadSet(*store_, "set");
  ASSERT_TRUE(view);
  for (const auto& [id, member] : view->members) {
    EXPECT_EQ(member.state.phase, MemberState::Phase::kStopped);
  }
}

TEST_P(ReplicaSets, SetsFollowOneLogIndependently) {
  Append(100);
  Running& one = Start(Options("one"), {}, "first");
  Running& two = Start(Options("two"), {}, "second");
  ASSERT_TRUE(AwaitAll("first_1") && AwaitAll("second_1"));
  Stop(one);
  Append(50);
  ASSERT_TRUE(AwaitAll("second_1"));
  EXPECT_EQ(Count("first_1"), "100");
  Stop(two);
  ExpectCleanAudit("two", "second");
}

TEST_P(ReplicaSets, FailingEventParksItsStreamWhichIsReplayedInOrder) {
  std::atomic<bool> broken = true;
  Append(200);
  Running& worker = Start(Options(), [&](const events::Event& event) {
    if (broken && event.stream == "stream-3" && event.version == 2) {
      throw std::runtime_error("poison");
    }
  });
  // Five events per stream: four of this one wait.
  ASSERT_TRUE(Await([&] { return Count() == "196"; })) << Count();
  const std::vector<int> slots{events::SlotOf("stream-3", 16)};
  auto parked = model_->Parked({"set", "record", 1}, slots);
  ASSERT_TRUE(parked);
  ASSERT_EQ(parked->size(), 1u);
  EXPECT_EQ(parked->front().versions, (std::vector<int64_t>{2, 3, 4, 5}));
  EXPECT_NE(parked->front().error.find("poison"), std::string::npos);
  broken = false;
  ASSERT_TRUE(model_->RequestReplay({"set", "record", 1}, ""));
  ASSERT_TRUE(AwaitAll()) << Count();
  Append(40);
  ASSERT_TRUE(AwaitAll()) << Count();
  Stop(worker);
  ExpectCleanAudit();
}

TEST_P(ReplicaSets, HangingProcessorDoesNotStopOthers) {
  std::mutex mutex;
  std::condition_variable released;
  bool go_on = false;
  const auto hang = [&](const events::Event& event) {
    if (event.stream != "stream-1") return;
    std::unique_lock lock(mutex);
    released.wait(lock, [&] { return go_on; });
  };
  Append(120);
  ReplicaOptions options = Options();
  options.handle_timeout = 500ms;
  // Two workers hang, one after the other; the third skips the stream.
  for (int i = 0; i < 3; ++i) Start(options, hang);
  EXPECT_TRUE(Await([&] { return Count() == "117"; })) << Count();
  {
    std::lock_guard lock(mutex);
    go_on = true;
  }
  released.notify_all();
  const std::vector<int> slots{events::SlotOf("stream-1", 16)};
  EXPECT_EQ(model_->Parked({"set", "record", 1}, slots)->size(), 1u);
  // Hung threads wake up and use this stack.
  workers_.clear();
}

// A worker in its own process, which an event kills.
TEST_P(ReplicaSets, AnEventThatEndsTheProcessIsParkedAfterAFewDeaths) {
  Append(120);
  int deaths = 0;
  for (bool died = true; died && deaths < 10; deaths += died) {
    const pid_t child = fork();
    if (child == 0) {
      auto store = Must(store::OpenStore(url_, RealEnv()));
      auto log = Must(events::OpenEventLog(url_, {}, RealEnv()));
      auto recorder = std::make_shared<Recorder>();
      recorder->before = [](const events::Event& event) {
        if (event.stream == "stream-7" && event.version == 2) _exit(66);
      };
      auto worker =
          Must(NewOrchestrator(*store, *log, url_, {recorder}, Options(), observer_, RealEnv()));
      std::stop_source stop;
      std::jthread thread([&] { static_cast<void>(worker->Run(stop.get_token())); });
      // Not the parent's connections.
      static_cast<void>(model_.release());
      model_ = Must(OpenReadModel(url_, RealEnv()));
      _exit(Await([&] { return Count() == "118"; }) ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status));
    died = WEXITSTATUS(status) == 66;
  }
  EXPECT_LE(deaths, 4);
  ASSERT_TRUE(Await([&] { return Count() == "118"; })) << Count();
  const auto parked =
      model_->Parked({"set", "record", 1}, std::vector{events::SlotOf("stream-7", 16)});
  ASSERT_EQ(parked->size(), 1u);
  EXPECT_EQ(parked->front().versions, (std::vector<int64_t>{2, 3}));
}

TEST_P(ReplicaSets, BatchesSlowerThanTheBarrierDoNotStopTheSet) {
  Append(12);
  ReplicaOptions options = Options();
  options.barrier_timeout = 1'500ms;
  options.batch = 2;
  const auto slow = [](const events::Event&) { RealEnv().Sleep(2s, {}); };
  for (int i = 0; i < 3; ++i) {
    Start(options, slow);
    ASSERT_TRUE(AwaitRunning(static_cast<size_t>(i) + 1));
  }
  ASSERT_TRUE(AwaitAll()) << Count();
  // One per joining worker, maybe more on a busy machine. With a single writer, joining workers
  // wait for the batch too, and are late.
  if (GetParam() == "postgresql") {
    EXPECT_LE(Must(ReadSet(*store_, "set")).generation.number, 6);
  }
  for (const auto& worker : workers_) Stop(*worker);
  ExpectCleanAudit();
}

TEST_P(ReplicaSets, OperatorsPauseResetSkipAndRebuild) {
  Append(80);
  ASSERT_TRUE(PauseProjection(*store_, "set", "record", true));
  Running& worker = Start();
  ASSERT_TRUE(AwaitRunning(1));
  EXPECT_EQ(Count(), "0");
  ASSERT_TRUE(PauseProjection(*store_, "set", "record", false));
  ASSERT_TRUE(AwaitAll()) << Count();

  ASSERT_TRUE(PauseProjection(*store_, "set", "record", true));
  ASSERT_TRUE(Await([&] { return Must(NotPausedYet(*store_, "set", "record")).empty(); }));
  Append(5);
  EXPECT_EQ(Count(), "80");
  ASSERT_TRUE(PauseProjection(*store_, "set", "record", false));
  ASSERT_TRUE(AwaitAll()) << Count();

  ASSERT_TRUE(ResetProjection(*store_, *log_, *model_, "set", *worker.recorder));
  ASSERT_TRUE(Await([&] { return worker.recorder->handled >= 170; }));
  ASSERT_TRUE(AwaitAll()) << Count();

  Rebuild rebuild(*store_, *log_, *model_, RealEnv(), "set", worker.recorder);
  EXPECT_FALSE(rebuild.Swap(true, {}));
  ASSERT_EQ(Must(rebuild.Begin()), 2);
  ASSERT_EQ(Must(rebuild.Begin()), 2);
  ASSERT_TRUE(rebuild.CatchUp(0, nothing, {}));
  ASSERT_TRUE(rebuild.Swap(false, {}));
  EXPECT_EQ(Must(DesiredFor(*store_, "set", "record")).active, 2);
  Append(40);
  ASSERT_TRUE(AwaitAll("record_1") && AwaitAll("record_2"));
  ASSERT_TRUE(rebuild.Swap(true, {}));
  EXPECT_EQ(Must(DesiredFor(*store_, "set", "record")).active, 1);
  EXPECT_EQ(Must(rebuild.Finish()), 2);

  // With no worker running, the event stays the next of its slot.
  Stop(worker);
  const events::StreamAppend bad{"bad", events::kAnyVersion, {{"T"}}};
  ASSERT_TRUE(log_->Append({&bad, 1}));
  const int64_t position = Must(log_->ReadStream("bad", 0, 1)).front().position;
  EXPECT_EQ(SkipEvent(*store_, *log_, *model_, {"set", "record", 1}, 1).error().code,
            Code::kConflict);
  ASSERT_TRUE(SkipEvent(*store_, *log_, *model_, {"set", "record", 1}, position));
  Running& successor = Start();
  Append(40);
  ASSERT_TRUE(AwaitAll()) << Count();
  Stop(successor);
  const AuditResult audit = Must(Audit(*log_, *model_, {"set", "record", 1}));
  EXPECT_TRUE(audit.wrong_slots.empty());
  EXPECT_EQ(audit.handled, appended_);
  EXPECT_EQ(audit.skipped, 1);
  EXPECT_EQ(audit.events, appended_ + 1);
}

TEST_P(ReplicaSets, EachEventHasItsSideEffectsOnceHoweverVersionsAreSwapped) {
  has_effects_ = true;
  std::atomic<int> appended = 0;
  std::jthread appender([&](std::stop_token stop) {
    auto own = Must(events::OpenEventLog(url_, {}, RealEnv()));
    while (!stop.stop_requested()) {
      std::vector<events::StreamAppend> appends;
      for (int s = 0; s < 40; ++s) {
        appends.push_back({"stream-" + std::to_string(s), events::kAnyVersion, {{"T"}}});
      }
      if (own->Append(appends)) appended += 40;
      RealEnv().Sleep(50ms, stop);
    }
  });
  Running& one = Start();
  Running& two = Start();
  ASSERT_TRUE(AwaitRunning(2));
  Rebuild rebuild(*store_, *log_, *model_, RealEnv(), "set", one.recorder);
  const auto swap = [&](bool back) {
    const Status swapped = rebuild.Swap(back, {});
    EXPECT_TRUE(swapped) << swapped.error().ToString();
  };
  for (int round = 0; round < 2; ++round) {
    ASSERT_TRUE(rebuild.Begin());
    ASSERT_TRUE(rebuild.CatchUp(200, nothing, {}));
    swap(false);
    swap(true);
    swap(false);
    Result<int> finished = 0;
    ASSERT_TRUE(Await([&] {
      finished = rebuild.Finish();
      return finished || finished.error().code != Code::kConflict;
    }));
    ASSERT_TRUE(finished) << finished.error().ToString();
  }
  appender.request_stop();
  appender.join();
  appended_ = appended;
  ASSERT_TRUE(AwaitAll("record_3")) << Count("record_3") << " of " << appended_;
  EXPECT_EQ(Count("record_effects"), std::to_string(appended_));
  Stop(one);
  Stop(two);
  std::vector<int> slots;
  for (int slot = 0; slot < 16; ++slot) slots.push_back(slot);
  EXPECT_TRUE(model_->Parked({"set", "record", 3}, slots)->empty());
}

TEST_P(ReplicaSets, VersionRunsWithTheDefinitionItWasBuiltFrom) {
  const auto with = [&](const std::string& value) {
    SqlProjectionSpec spec{.name = "sums", .tables = {"sums"}};
    spec.setup = {"CREATE TABLE IF NOT EXISTS {sums} (id BIGINT PRIMARY KEY, n BIGINT)"};
    spec.on["*"] = {"INSERT INTO {sums} VALUES (CAST(:position AS BIGINT), " + value + ")"};
    return Must(NewSqlProjection(
        spec, GetParam() == "sqlite" ? SqlDialect::kSqlite : SqlDialect::kPostgres));
  };
  const auto old_one = with("1"), new_one = with("2");
  const auto hashes = [&] { return Must(DesiredFor(*store_, "set", "sums")); };
  // Exactly one row with that value per event, and no others.
  const auto all = [&](const std::string& table, const std::string& value) {
    return Count(table + " WHERE n = " + value) == std::to_string(appended_) &&
           Count(table) == std::to_string(appended_);
  };
  Append(80);
  Running& first = StartWith(old_one);
  ASSERT_TRUE(Await([&] { return all("sums", "1"); }));
  EXPECT_EQ(hashes().Definition(1), DefinitionHash(*old_one));
  // The worker does not know the new definition.
  Rebuild rebuild(*store_, *log_, *model_, RealEnv(), "set", new_one);
  EXPECT_EQ(ResetProjection(*store_, *log_, *model_, "set", *new_one).error().code,
            Code::kConflict);
  ASSERT_EQ(Must(rebuild.Begin()), 2);
  Rebuild other(*store_, *log_, *model_, RealEnv(), "set", with("3"));
  EXPECT_EQ(other.Begin().error().code, Code::kConflict);
  ASSERT_TRUE(rebuild.CatchUp(0, nothing, {}));
  ASSERT_TRUE(rebuild.Swap(false, {}));
  EXPECT_EQ(hashes().Definition(2), DefinitionHash(*new_one));
  Append(40);
  ASSERT_TRUE(Await([&] { return all("sums", "2"); })) << Count("sums_v2 WHERE n = 2");
  ASSERT_TRUE(Await([&] { return all("sums_v1", "1"); })) << Count("sums_v1 WHERE n = 1");
  Stop(first);
  // A worker started with it keeps the old version as it was, and says so.
  Running& second = StartWith(new_one);
  Append(40);
  ASSERT_TRUE(Await([&] { return all("sums", "2") && all("sums_v1", "1"); }));
  bool told = false;
  const SetView view = Must(ReadSet(*store_, "set"));
  for (const auto& [id, member] : view.members) {
    told |= member.state.error.find(DefinitionHash(*old_one)) != std::string::npos &&
            member.state.error.find(DefinitionHash(*new_one)) != std::string::npos;
  }
  EXPECT_TRUE(told);
  ASSERT_EQ(rebuild.Begin().error().code, Code::kConflict);  // the old version is still there
  ASSERT_EQ(Must(rebuild.Finish()), 1);
  // From here on with another one, without handling anything again.
  ASSERT_TRUE(Must(AdoptDefinition(*store_, "set", *with("3"))));
  ASSERT_FALSE(Must(AdoptDefinition(*store_, "set", *with("3"))));
  ASSERT_TRUE(Await([&] {
    Append(1, 1);
    return Count("sums WHERE n = 3") != "0";
  }));
  Stop(second);
}

TEST_P(ReplicaSets, AProjectionIsNotForgottenWhileAWorkerHasIt) {
  Append(40);
  Running& worker = Start();
  ASSERT_TRUE(AwaitAll()) << Count();
  const Status refused = ForgetProjection(*store_, *model_, "set", "record");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kConflict);
  EXPECT_FALSE(model_->Slots({"set", "record", 1})->empty());
  Stop(worker);
  ASSERT_TRUE(ForgetProjection(*store_, *model_, "set", "record"));
  EXPECT_TRUE(model_->Slots({"set", "record", 1})->empty());
}

TEST_P(ReplicaSets, AForgottenProjectionDoesNotStartOverByItself) {
  Append(40);
  Stop(*[&] {
    Running* const worker = &Start();
    EXPECT_TRUE(AwaitAll()) << Count();
    return worker;
  }());
  ASSERT_TRUE(ForgetProjection(*store_, *model_, "set", "record"));
  EXPECT_EQ(ForgetProjection(*store_, *model_, "set", "record").error().code, Code::kNotFound);
  // A worker whose file still has it: the tables are full, and every event would count twice.
  Running& stale = Start();
  stale.thread.join();
  ASSERT_FALSE(stale.ended);
  EXPECT_EQ(stale.ended.error().code, Code::kIncompatible);
  EXPECT_NE(stale.ended.error().hint.find("reset"), std::string::npos);
  EXPECT_TRUE(model_->Slots({"set", "record", 1})->empty());
  Recorder recorder;
  ASSERT_TRUE(ResetProjection(*store_, *log_, *model_, "set", recorder));
  EXPECT_EQ(Count(), "0");
  Running& again = Start();
  EXPECT_TRUE(AwaitAll()) << Count();
  Stop(again);
  ExpectCleanAudit();
}

TEST_P(ReplicaSets, EmbeddersPauseReadTheStatusAndRebuild) {
  const ReplicaSet set{"set", *store_, *log_, url_, RealEnv()};
  Append(80);
  Running& worker = Start();
  ASSERT_TRUE(AwaitAll()) << Count();
  ASSERT_TRUE(PauseProjection(*store_, "set", "record", true));
  const auto paused = Must(ReadStatus(set, {"record"}));
  ASSERT_EQ(paused.size(), 1U);
  EXPECT_TRUE(paused.front().paused);
  EXPECT_TRUE(paused.front().same_log);
  EXPECT_EQ(paused.front().handled, 80);
  EXPECT_EQ(RebuildProjection(set, worker.recorder, nothing).error().code, Code::kConflict);
  ASSERT_TRUE(PauseProjection(*store_, "set", "record", false));
  Remaining remaining;
  EXPECT_EQ(Must(RebuildProjection(set, worker.recorder, remaining)), 2);
  EXPECT_GE(remaining.left, 0);
  EXPECT_TRUE(AwaitAll("record_2")) << Count("record_2");
  ASSERT_TRUE(RollBackRebuild(set, worker.recorder));
  EXPECT_EQ(Must(FinishRebuild(set, worker.recorder)), 2);
  EXPECT_EQ(Must(ReadStatus(set, {"record"})).size(), 1U);
  Stop(worker);
}

// Restored from a backup, a log gives its positions to other events.
TEST_P(ReplicaSets, LogOtherThanThatOfTheCheckpointsStopsTheWorker) {
  Append(80);
  Running& first = Start();
  ASSERT_TRUE(AwaitAll()) << Count();
  Stop(first);
  const std::string url = url_ + "?namespace=restored";
  log_ = Must(events::OpenEventLog(url, {.slots = 16}, RealEnv()));
  Append(120);
  Running& second = Start();
  second.thread.join();
  ASSERT_FALSE(second.ended);
  EXPECT_EQ(second.ended.error().code, Code::kIncompatible) << second.ended.error().ToString();
  EXPECT_NE(second.ended.error().message.find("restored"), std::string::npos);
  EXPECT_EQ(Count(), "80");
  const auto status = StatusOf(*store_, *log_, *model_, "set", {"record"});
  ASSERT_TRUE(status) << status.error().ToString();
  EXPECT_FALSE(CheckSameLog(*status));
}

// What the second version has not done cannot be done any more, and must not keep it.
TEST_P(ReplicaSets, ResetAndFinishedRebuildRecoverFromAReplacedLog) {
  Append(80);
  Running& first = Start();
  ASSERT_TRUE(AwaitAll()) << Count();
  const auto set = [&] { return ReplicaSet{"set", *store_, *log_, url_, RealEnv()}; };
  ASSERT_EQ(Must(RebuildProjection(set(), first.recorder, nothing)), 2);
  Stop(first);
  const Instance old{"set", "record", 1};
  const SlotState slot = Must(model_->Slots(old)).front();
  Must(model_->TakeOver(old, slot.generation + 1, std::vector<int>{slot.slot}));
  const auto transaction = Must(model_->Begin());
  ASSERT_TRUE(model_->Commit(*transaction, old,
                             {.moves = {{.slot = slot.slot,
                                         .generation = slot.generation + 1,
                                         .from = slot.position,
                                         .to = slot.position + 1,
                                         .effects_until = slot.effects_until}},
                              .parked = {{slot.slot, "stream-x", 1, true}},
                              .error = "why"}));
  EXPECT_EQ(FinishRebuild(set(), first.recorder).error().code, Code::kConflict);

  log_ = Must(events::OpenEventLog(url_ + "?namespace=restored", {.slots = 16}, RealEnv()));
  Append(120);
  ASSERT_TRUE(ResetProjection(*store_, *log_, *model_, "set", *first.recorder));
  const SetStatus status = Must(StatusOf(*store_, *log_, *model_, "set", {"record"}));
  const Status same = CheckSameLog(status);
  ASSERT_FALSE(same);
  EXPECT_NE(same.error().hint.find("--finish"), std::string::npos) << same.error().hint;
  const auto dropped = FinishRebuild(set(), first.recorder);
  ASSERT_TRUE(dropped) << dropped.error().ToString();
  EXPECT_EQ(*dropped, 1);
  Running& second = Start();
  EXPECT_TRUE(Await([&] { return Count("record_2") == "120"; })) << Count("record_2");
  Stop(second);
}

TEST_P(ReplicaSets, ScaleLimitsTheNumberOfActiveWorkers) {
  for (int i = 0; i < 3; ++i) Start();
  ASSERT_TRUE(AwaitRunning(3));
  ASSERT_TRUE(ScaleSet(*store_, "set", 1));
  ASSERT_TRUE(AwaitRunning(1));
  Append(80);
  ASSERT_TRUE(AwaitAll()) << Count();
  ASSERT_TRUE(ScaleSet(*store_, "set", std::nullopt));
  ASSERT_TRUE(AwaitRunning(3));
}

TEST_P(ReplicaSets, ExceptionWhileBuildingAProjectionIsAnError) {
  class Thrower final : public Projection {
   public:
    const std::string& name() const override { return name_; }
    Result<std::unique_ptr<Processor>> Build(const ReplicaPartition&) override { throw 42; }

   private:
    const std::string name_ = "thrower";
  };
  auto worker = Must(NewOrchestrator(*store_, *log_, url_, {std::make_shared<Thrower>()}, Options(),
                                     observer_, RealEnv()));
  const Status ended = worker->Run({});
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().code, Code::kInternal);
}

TEST_P(ReplicaSets, MismatchWithTheSetIsRejected) {
  Running& worker = Start();
  ASSERT_TRUE(AwaitRunning(1));
  Stop(worker);
  const auto refused = [&](events::EventLog& log, const std::string& projection) {
    auto other = Must(NewOrchestrator(*store_, log, url_, {std::make_shared<Recorder>(projection)},
                                      Options(), observer_, RealEnv()));
    return other->Run({});
  };
  Status renamed = refused(*log_, "recorder");
  ASSERT_FALSE(renamed);
  EXPECT_EQ(renamed.error().code, Code::kIncompatible);
  EXPECT_NE(renamed.error().message.find("record"), std::string::npos);
  auto small = Must(events::OpenEventLog("memory:", {.slots = 4}, RealEnv()));
  Status slots = refused(*small, "record");
  ASSERT_FALSE(slots);
  EXPECT_EQ(slots.error().code, Code::kIncompatible);
  EXPECT_FALSE(NewOrchestrator(*store_, *log_, url_, {}, Options(), observer_, RealEnv()));
}

// Two rows that every event changes. In their first batches two workers deadlock.
class SharedRows final : public Projection {
 public:
  explicit SharedRows(std::atomic<int>& met) : met_(met) {}
  const std::string& name() const override { return name_; }
  Status SetUp(Transaction& transaction, int) override {
    MUSTER_TRY(transaction.Execute(
        "CREATE TABLE IF NOT EXISTS shared (id BIGINT PRIMARY KEY, n BIGINT NOT NULL)"));
    return transaction.Execute(
        "INSERT INTO shared VALUES (0, 0), (1, 0) ON CONFLICT (id) DO NOTHING");
  }
  Result<std::unique_ptr<Processor>> Build(const ReplicaPartition& partition) override {
    return std::make_unique<FollowerThread>(met_, partition);
  }

 private:
  class FollowerThread final : public Processor {
   public:
    FollowerThread(std::atomic<int>& met, const ReplicaPartition& partition)
        : met_(met), partition_(partition) {}
    Status Handle(std::span<const events::Event> events, Transaction& transaction) override {
      const std::string sql =
          "UPDATE shared SET n = n + $1::bigint WHERE id = $2::bigint RETURNING n";
      const std::string count = std::to_string(events.size());
      MUSTER_TRY(transaction.Query(sql, {count, std::to_string(partition_.key)}));
      if (partition_.total == 2 && met_ < 2) {
        ++met_;
        while (met_ < 2) RealEnv().Sleep(1ms, {});
      }
      MUSTER_TRY(transaction.Query(sql, {count, std::to_string(1 - partition_.key)}));
      return {};
    }

   private:
    std::atomic<int>& met_;
    const ReplicaPartition partition_;
  };

  const std::string name_ = "shared";
  std::atomic<int>& met_;
};

// For databases with concurrent writers.
class SharedRowsSet : public ReplicaSets {};

TEST_P(SharedRowsSet, DeadlockedWorkersTakeTurns) {
  std::atomic<int> met = 0;
  std::vector<std::unique_ptr<Orchestrator>> orchestrators;
  std::vector<std::jthread> threads;
  for (int i = 0; i < 2; ++i) {
    orchestrators.push_back(
        Must(NewOrchestrator(*store_, *log_, url_, {std::make_shared<SharedRows>(met)}, Options(),
                             observer_, RealEnv())));
    threads.emplace_back([own = orchestrators.back().get()](std::stop_token stop) {
      EXPECT_TRUE(own->Run(std::move(stop)));
    });
  }
  ASSERT_TRUE(AwaitRunning(2));
  Append(800);
  const auto sum = [&] {
    auto transaction = Must(model_->Begin());
    auto rows = transaction->Query("SELECT sum(n) FROM shared", {});
    return rows ? rows->front().front().value_or("") : rows.error().message;
  };
  EXPECT_TRUE(Await([&] { return sum() == "1600"; })) << sum();
  // All workers have switched.
  EXPECT_TRUE(Await([&] {
    const SetView view = Must(ReadSet(*store_, "set"));
    size_t serial = 0;
    for (const auto& [id, member] : view.members) serial += !member.state.serial.empty();
    return serial == 2;
  }));
  const SetStatus status = Must(StatusOf(*store_, *log_, *model_, "set", {"shared"}));
  EXPECT_TRUE(status.instances.front().serialized);
  // The events are not to blame.
  std::vector<int> slots;
  for (int slot = 0; slot < 16; ++slot) slots.push_back(slot);
  EXPECT_TRUE(Must(model_->Parked({"set", "shared", 1}, slots)).empty());
}

TEST_P(SharedRowsSet, StatementSlowerThanTheUsualLimitSucceeds) {
  const SqlProjectionSpec spec{.name = "slow",
                               .tables = {"slow"},
                               .setup = {"CREATE TABLE IF NOT EXISTS {slow} (stream text)"},
                               .on = {{"T",
                                       {"INSERT INTO {slow} SELECT :stream FROM (SELECT "
                                        "pg_sleep(2)) s"}}}};
  const auto projection = Must(NewSqlProjection(spec, SqlDialect::kPostgres));
  std::vector<std::unique_ptr<Orchestrator>> orchestrators;
  std::vector<std::jthread> threads;
  for (int i = 0; i < 2; ++i) {
    auto model = Must(OpenReadModel(url_, RealEnv(), {.usual = 1s, .longest = 10s}));
    orchestrators.push_back(Must(NewOrchestratorOn(*store_, *log_, std::move(model), {projection},
                                                   Options(), observer_, RealEnv())));
    threads.emplace_back([own = orchestrators.back().get()](std::stop_token stop) {
      EXPECT_TRUE(own->Run(std::move(stop)));
    });
  }
  Append(6, 6);
  EXPECT_TRUE(Await([&] { return Count("slow") == "6"; })) << Count("slow");
}

// Its query takes as long as the database likes.
class Silent final : public Projection {
 public:
  const std::string& name() const override { return name_; }
  Result<std::unique_ptr<Processor>> Build(const ReplicaPartition&) override {
    return std::make_unique<Asking>(*this);
  }

  std::atomic<int> asked = 0;

 private:
  class Asking final : public Processor {
   public:
    explicit Asking(Silent& silent) : silent_(silent) {}
    Status Handle(std::span<const events::Event>, Transaction& transaction) override {
      // Short ones add up, too.
      MUSTER_TRY(transaction.Query("SELECT pg_sleep(0.3)", {}));
      if (++silent_.asked > 3) return {};
      MUSTER_TRY(transaction.Query("SELECT pg_sleep(7)", {}));
      return {};
    }

   private:
    Silent& silent_;
  };

  const std::string name_ = "silent";
};

TEST_P(SharedRowsSet, ASilentDatabaseIsNotBlamedOnTheEventThatWaitsForIt) {
  const auto silent = std::make_shared<Silent>();
  ReplicaOptions options = Options();
  options.handle_timeout = 2s;
  class ParkedWatch final : public ReplicaObserver {
   public:
    void Happened(const ReplicaEvent& event) override {
      parked = parked || event.kind == ReplicaEvent::Kind::kParked;
    }
    std::atomic<bool> parked = false;
  };
  ParkedWatch watch;
  const auto worker =
      Must(NewOrchestrator(*store_, *log_, url_, {silent}, options, watch, RealEnv()));
  std::jthread thread([&](std::stop_token stop) { EXPECT_TRUE(worker->Run(std::move(stop))); });
  Append(1);
  bool suspect = false;
  const auto handled = [&] {
    suspect |= !Must(ReadSet(*store_, "set")).suspects.empty();
    return Must(StatusOf(*store_, *log_, *model_, "set", {"silent"})).instances[0].handled;
  };
  EXPECT_TRUE(Await([&] { return handled() == 1; }));
  EXPECT_FALSE(suspect);
  EXPECT_FALSE(watch.parked);
}

// Erasing or pruning, for example; its sequence goes on.
TEST_P(SharedRowsSet, TableWhoseOwnerDeletesTheNewestEventsIsStillFollowed) {
  const auto run = [&](const std::string& sql) {
    const auto transaction = Must(model_->Begin());
    Status done = transaction->Execute(sql);
    if (done) done = model_->Commit(*transaction);
    ASSERT_TRUE(done) << done.error().ToString();
  };
  run("CREATE TABLE outbox (position bigserial PRIMARY KEY, stream text, version bigint, type "
      "text)");
  const auto insert = [&](int from, int to) {
    run("INSERT INTO outbox (stream, version, type) SELECT 'stream-' || n, 1, 'T' FROM "
        "generate_series(" +
        std::to_string(from) + ", " + std::to_string(to) + ") n");
  };
  const events::EventTable table{.table = "outbox",
                                 .position = "position",
                                 .stream = {"stream"},
                                 .version = "version",
                                 .id = "",
                                 .type = "type",
                                 .payload = "",
                                 .metadata = "",
                                 .time = ""};
  log_ = Must(events::OpenEventLog(url_, {.slots = 16, .table = table}, RealEnv()));
  insert(1, 20);
  Running& first = Start();
  ASSERT_TRUE(Await([&] { return Count() == "20"; })) << Count();
  Stop(first);
  run("DELETE FROM outbox WHERE position > 5");

  Running& second = Start();
  ASSERT_TRUE(AwaitRunning(1));
  const SetStatus status = Must(StatusOf(*store_, *log_, *model_, "set", {"record"}));
  EXPECT_TRUE(CheckSameLog(status));
  EXPECT_NE(status.instances.front().log_warning.find("ends at position 5"), std::string::npos)
      << status.instances.front().log_warning;
  insert(21, 30);
  EXPECT_TRUE(Await([&] { return Count() == "30"; })) << Count();
  EXPECT_EQ(Must(StatusOf(*store_, *log_, *model_, "set", {"record"})).instances[0].log_warning,
            "");
  Stop(second);
}

INSTANTIATE_TEST_SUITE_P(Databases, ReplicaSets, ::testing::Values("sqlite", "postgresql"),
                         [](const auto& backend) { return backend.param; });
INSTANTIATE_TEST_SUITE_P(Databases, SharedRowsSet, ::testing::Values("postgresql"),
                         [](const auto& backend) { return backend.param; });

// The workers use a separate store; log and read model are in SQLite.
class GenerationStore : public ReplicaSets {
 protected:
  std::unique_ptr<store::Store> OpenOwnStore() override {
    const std::string space = testing::UniqueName("replica");
    if (GetParam() == "dynamodb") {
      return Must(store::OpenStore(testing::DynamoDbServer::Shared().Url(space), RealEnv()));
    }
    const int port = testing::OpenSearchServer::Shared().port();
    return Must(store::OpenStore(
        "opensearch+http://127.0.0.1:" + std::to_string(port) + "?namespace=" + space, RealEnv()));
  }

  void SetUp() override {
    const std::string reason = GetParam() == "dynamodb" ? testing::DynamoDbServer::Unavailable()
                                                        : testing::OpenSearchServer::Unavailable();
    if (!reason.empty()) GTEST_SKIP() << "no " << GetParam() << ": " << reason;
    ReplicaSets::SetUp();
  }
};

TEST_P(GenerationStore, WorkersShareTheEventsWhileTheyJoinAndLeave) {
  JoinAndLeave(Strategy::kRecreate);
}

INSTANTIATE_TEST_SUITE_P(Servers, GenerationStore, ::testing::Values("opensearch", "dynamodb"),
                         [](const auto& backend) { return backend.param; });

TEST(Members, HundredJoinsWithinASecondMakeAtMostTwoGenerations) {
  constexpr size_t kMembers = 100;
  VirtualEnv env;
  const auto store = store::NewMemoryStore(env);
  ReplicaOptions options;
  options.set = "crowd";
  options.worker = "w";
  struct One {
    std::unique_ptr<Member> member;
    MonoTime next;
    bool in = false;
  };
  std::vector<One> crowd;
  size_t in = 0;
  for (const MonoTime end = env.MonoNow() + 60s; in < kMembers && env.MonoNow() < end;) {
    if (crowd.size() < kMembers) {
      auto member =
          std::make_unique<Member>(*store, env, options, 128, std::vector<std::string>{"p"});
      ASSERT_TRUE(member->Register());
      crowd.push_back({std::move(member), env.MonoNow()});
    }
    env.Sleep(10ms, {});
    for (One& one : crowd) {
      if (one.next > env.MonoNow()) continue;
      one.next = env.MonoNow() + 300ms;
      const auto view = one.member->Tick();
      ASSERT_TRUE(view) << view.error().ToString();
      const Generation& generation = (*view)->generation;
      const bool is_whole = generation.assignment.members.size() == kMembers;
      if (generation.phase != Generation::Phase::kRunning) {
        ASSERT_TRUE(one.member->Say(MemberState::Phase::kReady, generation.number));
      } else if (is_whole && !one.in) {
        one.in = true;
        ++in;
      }
    }
  }
  EXPECT_EQ(in, kMembers);
  EXPECT_LE(ReadSet(*store, "crowd")->generation.number, 2);
}

}  // namespace
}  // namespace muster::replica
