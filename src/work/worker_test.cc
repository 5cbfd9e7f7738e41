#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <set>
#include <thread>

#include "core/json.h"
#include "muster/store.h"
#include "muster/work.h"
#include "pipeline/flow/memory_sink.h"
#include "pipeline/flow/memory_source.h"
#include "pipeline/flow/wrappers.h"
#include "store/backends.h"
#include "support/await.h"
#include "support/short_pauses.h"
#include "work/coordinator.h"
#include "work/records.h"

namespace muster::work {
namespace {

using namespace std::chrono_literals;

class NoLetters final : public pipeline::DeadLetters {
 public:
  Status Add(const pipeline::DeadLetter&) override { return {}; }
  Status Flush() override { return {}; }
};

// Calls back when something happens to an item. Slots are threads.
class Watcher final : public WorkObserver {
 public:
  void Advanced(const WorkItem& item, const pipeline::Progress& progress) override {
    if (on_advance) on_advance(item, progress);
  }
  void Split(const WorkItem&, const pipeline::Progress&) override { ++splits; }
  void Ended(const WorkItem& item, ShardOutcome outcome, const Error*) override {
    std::lock_guard lock(mutex_);
    outcomes.emplace_back(item.name(), outcome);
  }

  void Waits(const std::string& what) override {
    std::lock_guard lock(mutex_);
    if (waits.empty() || waits.back() != what) waits.push_back(what);
  }
  bool Waited(const std::string& what) {
    std::lock_guard lock(mutex_);
    return std::any_of(waits.begin(), waits.end(),
                       [&](const std::string& one) { return one.starts_with(what); });
  }

  std::function<void(const WorkItem&, const pipeline::Progress&)> on_advance;
  std::vector<std::string> waits;
  std::atomic<int> splits = 0;
  std::vector<std::pair<std::string, ShardOutcome>> outcomes;

 private:
  std::mutex mutex_;
};

class WorkerTest : public ::testing::Test {
 protected:
  static constexpr size_t kDocuments = 40;

  void SetUp() override {
    for (size_t i = 0; i < kDocuments; ++i) source_.Add("orders", {std::to_string(i), "{}"});
    options_.terms = {.lease = 10s,
                      .max_lease = 60s,
                      .checkpoint_interval = 0ms,
                      .retry_delay = 1ms,
                      .idle_wait = 1ms,
                      .max_attempts = 3};
  }

  Result<WorkerReport> Run() {
    return RunWorker(*store_, pipeline_, options_, watcher_, stop_.get_token());
  }
  pipeline::Pipeline From(pipeline::Source& source) {
    return {.env = RealEnv(),
            .source = source,
            .transforms = *transforms_,
            .sink = sink_,
            .dead_letters = letters_,
            .throttle = throttle_,
            .options = pipeline_.options};
  }
  Result<WorkerReport> RunFrom(pipeline::Source& source) {
    pipeline::Pipeline pipeline = From(source);
    return RunWorker(*store_, pipeline, options_, watcher_, stop_.get_token());
  }
  std::unique_ptr<WorkCoordinator> Join(const std::string& worker) {
    return WorkCoordinator::Join(*store_, RealEnv(), options_.run, options_.terms, worker).value();
  }
  Result<ShardOutcome> Next(WorkCoordinator& coordinator) {
    return MigrateNextShard(coordinator, pipeline_, {}, watcher_, {stop_.get_token(), {}});
  }
  ItemInfo Item(const std::string& name) { return ReadItem(*store_, "run", name).value(); }
  std::vector<ItemInfo> Items() { return ListItems(*store_, "run", "", store::kMaxBatch).value(); }

  // Every document, once.
  void ExpectComplete() {
    std::multiset<std::string> found;
    for (const auto& entry : sink_.Documents("orders")) found.insert(entry.id);
    std::multiset<std::string> expected;
    for (size_t i = 0; i < kDocuments; ++i) expected.insert(std::to_string(i));
    EXPECT_EQ(found, expected);
  }

  std::unique_ptr<store::Store> store_ = store::NewMemoryStore(RealEnv());
  pipeline::MemorySource source_{20};
  pipeline::MemorySink sink_;
  NoLetters letters_;
  pipeline::Throttle throttle_{RealEnv()};
  std::unique_ptr<pipeline::TransformPlan> transforms_ = pipeline::ParseTransforms("", "").value();
  pipeline::Pipeline pipeline_{.env = RealEnv(),
                               .source = source_,
                               .transforms = *transforms_,
                               .sink = sink_,
                               .dead_letters = letters_,
                               .throttle = throttle_,
                               .options = {.limits = {.max_docs = 5}, .read_ahead = false}};
  WorkerOptions options_{.run = {.name = "run"}, .worker = "me"};
  Watcher watcher_;
  std::stop_source stop_;
};

TEST_F(WorkerTest, MigratesEveryShardOnceAndEnds) {
  const WorkerReport report = Run().value();
  EXPECT_TRUE(report.all_done);
  EXPECT_TRUE(report.quarantined.empty());
  ExpectComplete();
  ASSERT_EQ(Items().size(), 2u);
  EXPECT_EQ(Items()[0].name, "orders__0__0");
  EXPECT_EQ(Items()[1].progress.counts.read, 20);
  EXPECT_EQ(sink_.FinishedCollections(), std::set<std::string>{"orders"});
  EXPECT_TRUE(ReadRun(*store_, "run")->finished);
}

TEST_F(WorkerTest, AnItemThatCannotBeReadDoesNotStopTheOthers) {
  const auto prepared = PrepareWork(*Join("me"), pipeline_, {}, {});
  ASSERT_TRUE(prepared && *prepared);
  for (const char* damage : {"[]", "{}", "5", R"({"state":"open","partition":[]})"}) {
    SCOPED_TRACE(damage);
    auto record = store_->Get(kWorkKind, ItemKey("run", "orders__0__0")).value().value();
    record.body = damage;
    record.owner.clear();
    const store::Change change = store::Change::Put(record, store::Due::AtOnce());
    ASSERT_TRUE(store_->Write({&change, 1}));
    const auto report = Run();
    ASSERT_TRUE(report) << report.error().ToString();
    EXPECT_EQ(report->quarantined, std::vector<std::string>{"orders__0__0"});
    EXPECT_EQ(sink_.Documents("orders").size(), kDocuments / 2);
    EXPECT_FALSE(ReadRun(*store_, "run")->finished);
    ASSERT_EQ(Items().size(), 2u);
    EXPECT_EQ(Items()[0].name, "orders__0__0");
    EXPECT_EQ(Items()[0].state, ItemInfo::State::kUnreadable);
    EXPECT_NE(Items()[0].error.find("run/orders__0__0"), std::string::npos) << Items()[0].error;
    EXPECT_EQ(Items()[1].state, ItemInfo::State::kDone);
  }
}

TEST_F(WorkerTest, ARunThatCannotBeReadIsListedBesideTheOthers) {
  ASSERT_TRUE(Run());
  for (const char* damage :
       {"[]", R"({"state":[]})", R"({"state":"ready","incarnation":"i","pages":[]})",
        R"({"state":"ready","incarnation":"i","pages":-1})"}) {
    SCOPED_TRACE(damage);
    const store::Change change = store::Change::Put(
        store::Record{.kind = kRunKind, .queue = "bad", .key = "bad", .body = damage},
        store::Due::Never());
    ASSERT_TRUE(store_->Write({&change, 1}));
    const auto runs = ListRuns(*store_);
    ASSERT_TRUE(runs) << runs.error().ToString();
    ASSERT_EQ(runs->size(), 2u);
    EXPECT_EQ((*runs)[0].name, "bad");
    EXPECT_NE((*runs)[0].unreadable.find("run 'bad'"), std::string::npos) << (*runs)[0].unreadable;
    EXPECT_TRUE((*runs)[1].finished);
    const auto read = ReadRun(*store_, "bad");
    ASSERT_FALSE(read);
    EXPECT_EQ(read.error().code, Code::kCorrupt);
    const auto stored = store_->Get(kRunKind, "bad").value();
    const store::Change gone = store::Change::Delete(*stored);
    ASSERT_TRUE(store_->Write({&gone, 1}));
  }
}

TEST_F(WorkerTest, RunThatIsDoneStaysDone) {
  ASSERT_TRUE(Run());
  EXPECT_TRUE(Run()->all_done);
  ExpectComplete();
}

TEST_F(WorkerTest, AnotherSelectionIsAnotherMigration) {
  options_.run.selection = "--include orders";
  ASSERT_TRUE(Run());
  options_.run.selection = "--include customers";
  const auto refused = Run();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kConflict);
  EXPECT_NE(refused.error().message.find("--include orders"), std::string::npos);
}

// A following partition of the first shard comes first in the list and last in the run.
class FollowedSource final : public pipeline::SourceWrapper {
 public:
  explicit FollowedSource(pipeline::MemorySource& source) : pipeline::SourceWrapper(source) {}
  Result<std::vector<pipeline::Partition>> Partitions(const std::string& collection) override {
    MUSTER_ASSIGN(auto partitions, inner().Partitions(collection));
    pipeline::Partition follower = partitions.front();
    follower.begin = "9";
    follower.follows = true;
    partitions.insert(partitions.begin(), follower);
    return partitions;
  }
  Result<std::unique_ptr<pipeline::Reader>> Read(const pipeline::Partition& partition,
                                                 const std::string& position,
                                                 std::stop_token stop) override {
    if (before_reading) before_reading();
    if (partition.follows)
      followed = true;
    else if (partition.shard == 0 && followed)
      order_kept = false;
    return inner().Read(partition, position, stop);
  }
  Result<std::optional<int64_t>> CountAgain(const std::vector<pipeline::Partition>&) override {
    return count;
  }
  std::optional<double> FractionBefore(const pipeline::Partition&, const std::string&) override {
    return std::nullopt;
  }

  std::optional<int64_t> count;
  std::function<void()> before_reading = {};
  std::atomic<bool> followed = false;
  std::atomic<bool> order_kept = true;
};

TEST_F(WorkerTest, FollowerWaitsForTheOthersOfItsShard) {
  FollowedSource source(source_);
  options_.slots = 3;
  const auto report = RunFrom(source);
  ASSERT_TRUE(report) << report.error().ToString();
  EXPECT_TRUE(report->all_done);
  EXPECT_TRUE(source.followed);
  EXPECT_TRUE(source.order_kept);
}

TEST_F(WorkerTest, IdleSlotMakesAFollowerDueWhenItsTurnHasCome) {
  FollowedSource source(source_);
  pipeline::Pipeline pipeline = From(source);
  auto coordinator = Join("me");
  ASSERT_TRUE(PrepareWork(*coordinator, pipeline, {}, {}).value());
  const auto next = [&] { return MigrateNextShard(*coordinator, pipeline, {}, watcher_, {}); };
  EXPECT_EQ(next().value(), ShardOutcome::kReleased);
  EXPECT_EQ(watcher_.outcomes.back().first, "orders__0__9");
  EXPECT_FALSE(MayRetry(Item("orders__0__9"))) << "it has not failed";
  EXPECT_EQ(RetryItem(*store_, "run", "orders__0__9").error().code, Code::kConflict);
  EXPECT_EQ(next().value(), ShardOutcome::kCompleted);
  EXPECT_EQ(next().value(), ShardOutcome::kCompleted);
  // On a slow machine it is due by itself.
  if (next().value() == ShardOutcome::kNothingDue) {
    EXPECT_LE(Item("orders__0__9").due_in.value(), 0ms);
    EXPECT_EQ(next().value(), ShardOutcome::kCompleted);
  }
  EXPECT_EQ(watcher_.outcomes.back().first, "orders__0__9");
  EXPECT_EQ(next().value(), ShardOutcome::kAllDone);
}

TEST_F(WorkerTest, AFollowerThatHasFailedWaitsForItsRetry) {
  FollowedSource source(source_);
  pipeline::Pipeline pipeline = From(source);
  options_.terms.retry_delay = 60s;
  auto coordinator = Join("me");
  ASSERT_TRUE(PrepareWork(*coordinator, pipeline, {}, {}).value());
  const auto next = [&] { return MigrateNextShard(*coordinator, pipeline, {}, watcher_, {}); };
  ASSERT_EQ(next().value(), ShardOutcome::kReleased);
  ASSERT_EQ(next().value(), ShardOutcome::kCompleted);
  ASSERT_EQ(next().value(), ShardOutcome::kCompleted);
  sink_.fail = [](size_t) -> Status { return Error{Code::kInvalid, "no such field"}; };
  if (next().value() == ShardOutcome::kNothingDue) {
    ASSERT_EQ(next().value(), ShardOutcome::kFailed);
  }
  EXPECT_EQ(next().value(), ShardOutcome::kNothingDue);
  EXPECT_GT(Item("orders__0__9").due_in.value(), 0ms);
}

// A sink that is retried by its writer; `look` sees what others see before and while it waits.
class RetriedSink final : public pipeline::SinkWrapper {
 public:
  RetriedSink(pipeline::Sink& inner, std::function<void()> look)
      : SinkWrapper(inner), look_(std::move(look)) {}

  Result<std::unique_ptr<pipeline::Writer>> Open(const std::string& collection,
                                                 const pipeline::Fence& fence) override {
    MUSTER_ASSIGN(auto writer, SinkWrapper::Open(collection, fence));
    return std::make_unique<RetriedWriter>(std::move(writer), look_);
  }

 private:
  class RetriedWriter final : public pipeline::WriterWrapper {
   public:
    RetriedWriter(std::unique_ptr<Writer> inner, const std::function<void()>& look)
        : WriterWrapper(std::move(inner)), look_(look) {}
    Result<std::vector<pipeline::Refused>> Write(const pipeline::Batch& batch,
                                                 const pipeline::Progress& after,
                                                 const pipeline::Patience& patience) override {
      look_();
      patience.waits(Error{Code::kUnavailable, "it is down"});
      look_();
      return WriterWrapper::Write(batch, after, patience);
    }

   private:
    const std::function<void()>& look_;
  };

  const std::function<void()> look_;
};

TEST_F(WorkerTest, HeldItemSaysWhatItsHolderWaitsFor) {
  std::vector<ItemInfo> seen;
  RetriedSink sink(sink_, [&] { seen.push_back(Items()[0]); });
  pipeline::Pipeline pipeline{.env = RealEnv(),
                              .source = source_,
                              .transforms = *transforms_,
                              .sink = sink,
                              .dead_letters = letters_,
                              .throttle = throttle_,
                              .options = pipeline_.options};
  auto coordinator = Join("me");
  ASSERT_TRUE(PrepareWork(*coordinator, pipeline, {}, {}).value());
  EXPECT_EQ(MigrateNextShard(*coordinator, pipeline, {}, watcher_, {}).value(),
            ShardOutcome::kCompleted);
  ASSERT_FALSE(seen.empty());
  EXPECT_EQ(seen[0].attempt, 1);
  for (size_t i = 0; i < seen.size(); i += 2) {
    const ItemInfo& before = seen[i];
    const ItemInfo& waiting = seen[i + 1];
    const std::string why = WhyItem(waiting);
    EXPECT_TRUE(why.starts_with("held, lease expires in ")) << why;
    EXPECT_NE(why.find("the sink: it is down"), std::string::npos) << why;
    EXPECT_EQ(before.error, "");
    EXPECT_EQ(waiting.attempt, before.attempt) << "waiting is no progress";
    EXPECT_EQ(waiting.due, before.due) << "waiting renews nothing";
  }
  EXPECT_EQ(Items()[0].error, "");
}

TEST_F(WorkerTest, ItemThatWaitsForItsNextAttemptCanBeRetriedNow) {
  options_.terms.retry_delay = 3600s;
  sink_.fail = [](size_t) -> Status { return Error{Code::kInvalid, "no such field"}; };
  auto coordinator = Join("me");
  ASSERT_TRUE(PrepareWork(*coordinator, pipeline_, {}, {}).value());
  ASSERT_EQ(Next(*coordinator).value(), ShardOutcome::kFailed);
  const ItemInfo waiting = Items()[0];
  ASSERT_GT(waiting.due_in.value(), 0ms);
  EXPECT_TRUE(MayRetry(waiting));
  ASSERT_TRUE(RetryItem(*store_, "run", waiting.name));
  EXPECT_LE(Items()[0].due_in.value(), 0ms);
  EXPECT_EQ(Items()[0].attempt, 0);
  EXPECT_FALSE(MayRetry(Items()[0]));
  EXPECT_EQ(RetryItem(*store_, "run", waiting.name).error().code, Code::kConflict);
}

TEST_F(WorkerTest, RunIsNotDoneIfTheSourceCountsMore) {
  FollowedSource source(source_);
  source.count = 1'000;
  const auto report = RunFrom(source);
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code, Code::kCorrupt);
  EXPECT_FALSE(ReadRun(*store_, "run")->finished);
}

// A worker that judged a run, and sleeps while the store goes back and another incarnation begins,
// must not mark that one as ended.
TEST_F(WorkerTest, AnEndCountsForTheIncarnationThatWasJudged) {
  ASSERT_TRUE(Run());
  ASSERT_TRUE(ReadRun(*store_, "run")->finished);
  options_.run.new_incarnation = true;
  const auto coordinator = Join("next");
  EXPECT_FALSE(ReadRun(*store_, "run")->finished);
  EXPECT_EQ(Next(*coordinator).value(), ShardOutcome::kAllDone);
  EXPECT_TRUE(ReadRun(*store_, "run")->finished);
}

TEST_F(WorkerTest, SlotsShareTheItems) {
  options_.slots = 4;
  EXPECT_TRUE(Run()->all_done);
  ExpectComplete();
}

TEST_F(WorkerTest, StopHandsOverToASuccessor) {
  watcher_.on_advance = [&](const WorkItem&, const pipeline::Progress& progress) {
    if (progress.counts.read == 10) stop_.request_stop();
  };
  auto coordinator = Join("me");
  ASSERT_TRUE(PrepareWork(*coordinator, pipeline_, {}, {}).value());
  EXPECT_EQ(Next(*coordinator).value(), ShardOutcome::kHandedOver);
  ASSERT_EQ(watcher_.outcomes.size(), 1u);
  EXPECT_EQ(watcher_.outcomes[0].second, ShardOutcome::kHandedOver);
  const ItemInfo item = Item(watcher_.outcomes[0].first);
  EXPECT_EQ(item.state, ItemInfo::State::kDone);
  EXPECT_EQ(item.progress.counts.read, 10);
  ASSERT_EQ(item.successors.size(), 1u);
  EXPECT_EQ(Item(item.successors[0]).state, ItemInfo::State::kOpen);
  stop_ = std::stop_source();
  watcher_.on_advance = {};
  EXPECT_TRUE(Run()->all_done);
  ExpectComplete();
}

TEST_F(WorkerTest, StopWithoutProgressReleasesAtOnce) {
  auto coordinator = Join("me");
  ASSERT_TRUE(PrepareWork(*coordinator, pipeline_, {}, {}).value());
  sink_.fail = [&](size_t) -> Status {
    stop_.request_stop();
    return Error{Code::kUnavailable, "no"};
  };
  EXPECT_EQ(Next(*coordinator).value(), ShardOutcome::kReleased);
  for (const ItemInfo& item : Items()) {
    EXPECT_EQ(item.attempt, 0);
    EXPECT_LE(item.due_in.value(), 0ms);
  }
}

TEST_F(WorkerTest, ARunOfShortItemsHasARateUntilItIsHistory) {
  ASSERT_TRUE(Run().value().all_done);
  for (const ItemInfo& item : Items()) {
    EXPECT_GT(item.recent.documents, 0) << item.name;
    EXPECT_LE(item.recent.documents, static_cast<double>(item.progress.counts.read)) << item.name;
    EXPECT_EQ(item.holder, "me");
  }
  EXPECT_EQ(ReadTotals(*store_, "run")->docs_per_second, 0) << "nothing is left to do";
  store::Record record = store_->Get(kWorkKind, "run/orders__0__0").value().value();
  ItemBody body = ItemBody::FromJson(record.body).value();
  for (int64_t* moment : {&body.since_ms, &body.until_ms}) *moment -= 60'000;
  record.body = body.ToJson();
  const store::Change change = store::Change::Put(record, store::Due::Never());
  ASSERT_TRUE(store_->Write({&change, 1}));
  EXPECT_EQ(Item("orders__0__0").recent.documents, 0);
}

TEST_F(WorkerTest, MaxHoldHandsOver) {
  options_.terms.max_hold = 1ms;
  sink_.fail = [](size_t) -> Status {
    std::this_thread::sleep_for(2ms);
    return {};
  };
  EXPECT_TRUE(Run()->all_done);
  EXPECT_GE(Items().size(), 6u);
  ExpectComplete();
}

TEST_F(WorkerTest, FailureIsRetriedThenQuarantinedAndRetriedByHand) {
  bool broken = true;
  sink_.fail = [&](size_t) -> Status {
    if (broken) return Error{Code::kInvalid, "no such field"};
    return {};
  };
  const WorkerReport report = Run().value();
  EXPECT_TRUE(report.all_done);
  EXPECT_EQ(report.quarantined, (std::vector<std::string>{"orders__0__0", "orders__1__000020"}));
  EXPECT_EQ(Item("orders__0__0").error, "no such field");
  EXPECT_TRUE(sink_.FinishedCollections().empty());
  broken = false;
  ASSERT_TRUE(RetryItem(*store_, "run", "orders__0__0"));
  ASSERT_TRUE(RetryItem(*store_, "run", "orders__1__000020"));
  EXPECT_EQ(RetryItem(*store_, "run", "orders__0__0").error().code, Code::kConflict);
  EXPECT_TRUE(Run()->quarantined.empty());
  ExpectComplete();
}

// Its holders crashed, the first of them between a split and the creation of what it had split off.
TEST_F(WorkerTest, WhatWasSplitOffFromAQuarantinedItemIsMigrated) {
  auto coordinator = Join("me");
  ASSERT_TRUE(PrepareWork(*coordinator, pipeline_, {}, {}).value());
  store::Record record = store_->Get(kWorkKind, "run/orders__0__0").value().value();
  ItemBody body = ItemBody::FromJson(record.body).value();
  body.progress.end = "000005";
  body.progress.former_ends = {body.partition.end};
  record.body = body.ToJson();
  record.attempt = options_.terms.max_attempts;
  const store::Change change = store::Change::Put(record, store::Due::AtOnce());
  ASSERT_TRUE(store_->Write({&change, 1}));
  const WorkerReport report = Run().value();
  EXPECT_EQ(report.quarantined, std::vector<std::string>{"orders__0__0"});
  EXPECT_EQ(Item("orders__0__000005").state, ItemInfo::State::kDone);
  ASSERT_TRUE(RetryItem(*store_, "run", "orders__0__0"));
  EXPECT_TRUE(Run()->quarantined.empty());
  ExpectComplete();
}

TEST_F(WorkerTest, FailFastEndsTheWorkerWithTheFirstError) {
  options_.terms.fail_fast = true;
  for (const Code code : {Code::kInvalid, Code::kUnavailable}) {
    sink_.fail = [&](size_t) -> Status { return Error{code, "not today"}; };
    watcher_.outcomes.clear();
    const auto report = Run();
    ASSERT_FALSE(report);
    EXPECT_EQ(report.error().code, code);
    EXPECT_EQ(report.error().message, "not today");
    ASSERT_EQ(watcher_.outcomes.size(), 1U) << "another item was begun";
    EXPECT_EQ(watcher_.outcomes[0].second, ShardOutcome::kFailed);
  }
  sink_.fail = {};
  EXPECT_TRUE(Run()->all_done);
  ExpectComplete();
}

TEST_F(WorkerTest, AloneAStopLeavesTheItemOpenAndUnsealed) {
  options_.run.alone = true;
  watcher_.on_advance = [&](const WorkItem& item, const pipeline::Progress&) {
    EXPECT_TRUE(item.fence().alone);
    EXPECT_EQ(item.fence().incarnation, "run");
    stop_.request_stop();
  };
  EXPECT_FALSE(Run()->all_done);
  ASSERT_EQ(watcher_.outcomes.size(), 1U);
  EXPECT_EQ(watcher_.outcomes[0].second, ShardOutcome::kReleased);
  EXPECT_TRUE(sink_.FinishedItems().empty());
  EXPECT_EQ(Items().size(), 2U) << "there is no successor";
}

TEST_F(WorkerTest, ProgressKeepsAFailingItemOutOfQuarantine) {
  int writes = 0;
  sink_.fail = [&](size_t) -> Status {
    if (++writes % 2 == 0) return Error{Code::kUnavailable, "now and then"};
    return {};
  };
  EXPECT_TRUE(Run()->quarantined.empty());
  ExpectComplete();
}

TEST_F(WorkerTest, OutageOfTheSinkIsAwaitedAndBlamesNoItem) {
  std::atomic<int> tries = 0;
  sink_.fail = [&](size_t) -> Status {
    if (++tries < 10) return Error{Code::kUnavailable, "connection refused"};
    return {};
  };
  options_.slots = 2;
  const auto report = Run();
  ASSERT_TRUE(report) << report.error().ToString();
  EXPECT_TRUE(report->all_done);
  EXPECT_TRUE(report->quarantined.empty());
  ExpectComplete();
  EXPECT_NE(std::find(watcher_.waits.begin(), watcher_.waits.end(), "the sink: connection refused"),
            watcher_.waits.end());
  EXPECT_EQ(watcher_.waits.back(), "") << "it waits no longer";
}

TEST_F(WorkerTest, OutageDuringWorkQuarantinesNothing) {
  for (const Code code : {Code::kUnavailable, Code::kUnknownOutcome, Code::kFull, Code::kReadOnly,
                          Code::kPermission}) {
    SCOPED_TRACE(CodeName(code));
    options_.run.name = "run-" + std::to_string(static_cast<int>(code));
    std::atomic<int> tries = 0;
    sink_.fail = [&](size_t) -> Status {
      if (const int now = ++tries; now > 3 && now < 12) return Error{code, "away"};
      return {};
    };
    const auto report = Run();
    ASSERT_TRUE(report) << report.error().ToString();
    EXPECT_TRUE(report->quarantined.empty());
  }
}

TEST_F(WorkerTest, CutOffWorkerLeavesItsItemsToOthers) {
  const auto prepared = PrepareWork(*Join("me"), pipeline_, {}, {});
  ASSERT_TRUE(prepared && *prepared);
  sink_.fail = [](size_t) -> Status { return Error{Code::kUnavailable, "no route to host"}; };
  const auto lonely = Join("lonely");
  for (int i = 0; i < 30; ++i) {
    const auto outcome = Next(*lonely);
    ASSERT_TRUE(outcome) << outcome.error().ToString();
    EXPECT_NE(*outcome, ShardOutcome::kQuarantined);
  }
  for (const ItemInfo& item : Items()) {
    EXPECT_EQ(item.state, ItemInfo::State::kOpen);
    EXPECT_EQ(item.attempt, 0);
    EXPECT_NE(item.error.find("sink: no route to host"), std::string::npos) << item.error;
  }
  sink_.fail = {};
  EXPECT_TRUE(Run()->quarantined.empty());
  ExpectComplete();
}

TEST_F(WorkerTest, PermanentlyRefusedItemIsQuarantinedAndOthersFinish) {
  source_.Add("gone", {"1", "{}"});
  sink_.fail_collection = [](const std::string& collection) -> Status {
    if (collection == "gone") return Error{Code::kNotFound, "no such table"};
    return {};
  };
  const auto report = Run();
  ASSERT_TRUE(report) << report.error().ToString();
  EXPECT_TRUE(report->all_done);
  EXPECT_EQ(report->quarantined, std::vector<std::string>{"gone__0__0"});
  EXPECT_EQ(sink_.FinishedCollections(), std::set<std::string>{"orders"});
  ExpectComplete();
}

TEST_F(WorkerTest, SimultaneousFailuresCountAsOne) {
  Circuit circuit(RealEnv(), 50ms);
  const Error away{Code::kUnavailable, "away", "", Party::kSink};
  for (const char* item : {"a", "b", "c", "d", "e", "f", "g", "h"}) circuit.Failed(item, away);
  const MonoTime begin = RealEnv().MonoNow();
  ASSERT_TRUE(circuit.Await({}));
  EXPECT_LT(RealEnv().MonoNow() - begin, 1s) << "the first pause, and not the eighth";
  circuit.Settled();  // nothing was due
  ASSERT_TRUE(circuit.Await({}));
}

TEST_F(WorkerTest, OwnSuccessesAreNoEvidenceAboutOthers) {
  Circuit circuit(RealEnv(), 1ms);
  const Error full{Code::kFull, "no space left", "", Party::kSink};
  EXPECT_FALSE(circuit.Failed("a", full));
  circuit.Succeeded("a");
  EXPECT_FALSE(circuit.Failed("a", full));
  circuit.Succeeded("b");
  EXPECT_TRUE(circuit.Failed("a", full));
}

TEST_F(WorkerTest, LoneFailingItemIsQuarantinedOnlyByTwoWorkers) {
  Circuit circuit(RealEnv(), 1ms);
  const Error away{Code::kUnavailable, "away", "", Party::kSource};
  EXPECT_FALSE(circuit.Failed("a", away));
  EXPECT_FALSE(circuit.Failed("a", away)) << "nothing got through";
  circuit.Succeeded("c");
  EXPECT_TRUE(circuit.Failed("a", away));
  EXPECT_FALSE(circuit.Failed("b", away)) << "its first failure";
  EXPECT_FALSE(circuit.Failed("a", away));

  const auto item = [&](const std::string& worker) {
    return Join(worker)->AcquireNext({}).value().value();
  };
  ASSERT_TRUE(PrepareWork(*Join("me"), pipeline_, {}, {}).value());
  EXPECT_FALSE(item("one").FailedElsewhere());
  for (const char* worker : {"one", "one"}) {
    LeasedItem held = item(worker);
    EXPECT_FALSE(held.FailedElsewhere());
    ASSERT_TRUE(held.Fail(away, 0ms, std::nullopt, true));
  }
  LeasedItem held = item("two");
  EXPECT_TRUE(held.FailedElsewhere());
  ASSERT_TRUE(held.Checkpoint(held.progress(), std::nullopt, false));
  EXPECT_FALSE(held.FailedElsewhere()) << "there was progress";
}

// A store that went back in time grants the same epoch again, to another slot of the worker.
TEST_F(WorkerTest, TwoSlotsWithTheSameEpochAreDifferentHolders) {
  ASSERT_TRUE(PrepareWork(*Join("me"), pipeline_, {}, {}).value());
  LeasedItem held = Join("me")->AcquireNext({}).value().value();
  EXPECT_EQ(Item(held.name()).holder, "me");
  store::Record record = store_->Get(kWorkKind, ItemKey("run", held.name())).value().value();
  EXPECT_EQ(record.owner, store::OwnerName("me", held.fence().holder));
  record.owner = store::OwnerName("me", RealEnv().NewId());
  const store::Change change = store::Change::Put(record, store::Due::Unchanged());
  ASSERT_TRUE(store_->Write({&change, 1}).value().front().applied);
  EXPECT_EQ(Item(held.name()).holder, "me");
  EXPECT_FALSE(held.StillOurs().value());
  const Status stored = held.Checkpoint(held.progress(), std::nullopt, false);
  ASSERT_FALSE(stored);
  EXPECT_EQ(stored.error().code, Code::kLeaseLost);
}

TEST_F(WorkerTest, AnItemWhoseHolderDisappearedIsSuspectUntilOneReports) {
  auto coordinator = Join("me");
  options_.terms.lease = 1ms;
  options_.terms.max_lease = 1ms;
  ASSERT_TRUE(PrepareWork(*coordinator, pipeline_, {}, {}).value());
  const auto acquire = [&] {
    std::optional<LeasedItem> item = coordinator->AcquireNext({}).value();
    while (item->name() != "orders__0__0") {
      EXPECT_TRUE(item->Fail({Code::kInternal, "later"}, 1h, std::nullopt, false));
      item = coordinator->AcquireNext({}).value();
    }
    return *std::move(item);
  };
  const auto disappears = [&] {
    const auto taken = store_->Claim({.kind = kWorkKind,
                                      .queue = "run",
                                      .key = ItemKey("run", "orders__0__0"),
                                      .owner = "other",
                                      .claim_id = RealEnv().NewId(),
                                      .lease = 1ms,
                                      .max_lease = 1ms});
    ASSERT_EQ(taken.value().size(), 1u);
    RealEnv().Sleep(2ms, {});
  };
  LeasedItem first = acquire();
  EXPECT_FALSE(first.IsSuspect());
  ASSERT_TRUE(first.Fail({Code::kInvalid, "bad"}, 0ms, std::nullopt, true));
  LeasedItem reported = acquire();
  EXPECT_EQ(reported.attempt(), 2);
  EXPECT_FALSE(reported.IsSuspect());
  ASSERT_TRUE(reported.Fail({Code::kInvalid, "bad"}, 0ms, std::nullopt, true));
  disappears();
  LeasedItem suspect = acquire();
  EXPECT_TRUE(suspect.IsSuspect());
  ASSERT_TRUE(suspect.Release());
  LeasedItem again = acquire();
  EXPECT_TRUE(again.IsSuspect()) << "a release says nothing about it";
  ASSERT_TRUE(again.Checkpoint(again.progress(), std::nullopt, false));
  ASSERT_TRUE(again.Release());
  EXPECT_FALSE(acquire().IsSuspect()) << "there was progress";
}

TEST_F(WorkerTest, RecordsOfANewerVersionAreRefusedByNameAndNumber) {
  auto coordinator = Join("me");
  ASSERT_TRUE(PrepareWork(*coordinator, pipeline_, {}, {}).value());
  const auto set_version = [&](const char* kind, const std::string& key, int version) {
    store::Record record = store_->Get(kind, key).value().value();
    Json body = Json::parse(record.body);
    EXPECT_EQ(body["v"].get<int>(), 1);
    body["v"] = version;
    record.body = ToJsonText(body);
    const store::Change change = store::Change::Put(record, store::Due::AtOnce());
    EXPECT_TRUE(store_->Write({&change, 1}).value().front().applied);
  };
  for (const ItemInfo& item : Items()) set_version(kWorkKind, item.key, 2);
  const auto ran = Run();
  ASSERT_FALSE(ran);
  EXPECT_NE(ran.error().message.find("item 'run/orders__"), std::string::npos)
      << ran.error().message;
  EXPECT_NE(ran.error().message.find("in format 2"), std::string::npos) << ran.error().message;
  EXPECT_EQ(Items()[0].attempt, 0) << "looking at it is not an attempt";
  EXPECT_EQ(Items()[0].state, ItemInfo::State::kUnreadable);

  set_version(kRunKind, "run", 3);
  const auto joined = WorkCoordinator::Join(*store_, RealEnv(), options_.run, {}, "me");
  ASSERT_FALSE(joined);
  EXPECT_NE(joined.error().message.find("in format 3"), std::string::npos);
  ASSERT_EQ(ListRuns(*store_)->size(), 1u);
  EXPECT_NE(ListRuns(*store_)->front().unreadable.find("in format 3"), std::string::npos);
}

// Their leases were lost through no fault of theirs, say by a jump of the store's clock.
TEST_F(WorkerTest, HoldersThatDisappearedDoNotCountOnceOneReportsAnOutage) {
  auto coordinator = Join("me");
  ASSERT_TRUE(PrepareWork(*coordinator, pipeline_, {}, {}).value());
  const auto disappears = [&] {
    const std::vector<store::Record> taken = store_
                                                 ->Claim({.kind = kWorkKind,
                                                          .queue = "run",
                                                          .key = ItemKey("run", "orders__0__0"),
                                                          .owner = "other",
                                                          .claim_id = RealEnv().NewId(),
                                                          .lease = 1ms,
                                                          .max_lease = 1ms})
                                                 .value();
    ASSERT_EQ(taken.size(), 1u);
    RealEnv().Sleep(2ms, {});
  };
  const Error away{Code::kUnavailable, "away", "", Party::kSink};
  for (int round = 0; round < 3; ++round) {
    for (int i = 1; i < options_.terms.max_attempts; ++i) disappears();
    std::optional<LeasedItem> item = coordinator->AcquireNext({}).value();
    while (item->name() != "orders__0__0") {
      ASSERT_TRUE(item->Fail(away, 1h, std::nullopt, false));
      item = coordinator->AcquireNext({}).value();
    }
    ASSERT_LE(item->attempt(), options_.terms.max_attempts);
    ASSERT_TRUE(item->Fail(away, 0ms, std::nullopt, true));
    EXPECT_EQ(Item("orders__0__0").attempt, 0);
  }
}

TEST_F(WorkerTest, HolderSplitsItsItemForAnIdleWorker) {
  auto holder = Join("holder");
  ASSERT_TRUE(PrepareWork(*holder, pipeline_, {}, {}).value());
  ASSERT_EQ(Next(*holder).value(), ShardOutcome::kCompleted);  // the other shard
  auto idle = Join("idle");
  bool wished = false;
  watcher_.on_advance = [&](const WorkItem&, const pipeline::Progress&) {
    if (std::exchange(wished, true)) return;
    EXPECT_FALSE(idle->AllSettled().value());
    EXPECT_TRUE(idle->RequestSplit());
    EXPECT_TRUE(idle->AllSettled());
    EXPECT_TRUE(idle->RequestSplit());
  };
  EXPECT_EQ(Next(*holder).value(), ShardOutcome::kCompleted);
  EXPECT_EQ(watcher_.splits, 1);
  const ItemInfo item = Item(watcher_.outcomes.at(1).first);
  ASSERT_EQ(item.successors.size(), 1u);
  EXPECT_LT(item.progress.counts.read, 20);
  EXPECT_EQ(item.progress.counts.read + Item(item.successors[0]).partition.documents.value_or(0),
            20);
}

TEST_F(WorkerTest, SuccessorThatWasNamedOnlyIsCreatedByTheNextHolder) {
  auto coordinator = Join("me");
  ASSERT_TRUE(PrepareWork(*coordinator, pipeline_, {}, {}).value());
  store::Record record = store_->Get(kWorkKind, "run/orders__0__0").value().value();
  ItemBody body = ItemBody::FromJson(record.body).value();
  body.progress = body.progress.CutAt("000007");
  record.body = body.ToJson();
  const store::Change change = store::Change::Put(record, store::Due::AtOnce());
  ASSERT_TRUE(store_->Write({&change, 1}));
  EXPECT_TRUE(Run()->all_done);
  EXPECT_EQ(Item("orders__0__000007").progress.counts.read, 13);
  ExpectComplete();
}

TEST_F(WorkerTest, StoreThatWentBackStopsTheWorkerLoudlyUntilANewIncarnation) {
  options_.terms.lease = options_.terms.max_lease = 1h;
  ASSERT_TRUE(PrepareWork(*Join("me"), pipeline_, {}, {}).value());
  auto backup = store::CopyMemoryStore(*store_);
  ASSERT_TRUE(Run());
  const std::string incarnation = ReadRun(*store_, "run")->incarnation;
  ASSERT_TRUE(sink_.Open(
      "orders", {.run = "run", .incarnation = incarnation, .item = "orders__0__0", .epoch = 3}));
  store_ = std::move(backup);
  const auto report = Run();
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code, Code::kIncompatible);
  EXPECT_NE(report.error().hint.find("--new-incarnation"), std::string::npos);
  const ItemInfo left = Item("orders__0__0");
  EXPECT_FALSE(IsHeld(left)) << "the next holder need not wait for the lease";
  EXPECT_NE(left.error.find("the sink refuses its holder"), std::string::npos) << left.error;
  EXPECT_EQ(left.attempt, 1);
  options_.run.new_incarnation = true;
  EXPECT_TRUE(Run()->all_done);
  ExpectComplete();
}

TEST_F(WorkerTest, FreshStoreDoesNotTakeOverATargetUnasked) {
  ASSERT_TRUE(Run());
  store_ = store::NewMemoryStore(RealEnv());
  const auto report = Run();
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code, Code::kIncompatible);
}

// Another item of its shard was written by a newer version: that is not the item's fault.
TEST_F(WorkerTest, ItemIsReleasedIfTheWorkerEndsForAnotherReason) {
  options_.terms.lease = options_.terms.max_lease = 1h;
  ASSERT_TRUE(PrepareWork(*Join("me"), pipeline_, {}, {}).value());
  store::Record record = store_->Get(kWorkKind, ItemKey("run", "orders__0__0")).value().value();
  Json body = Json::parse(record.body);
  body["follows"] = true;
  record.body = ToJsonText(body);
  body["v"] = 1'000;
  const store::Record newer{.kind = kWorkKind,
                            .queue = "run",
                            .key = ItemKey("run", "orders__0__1"),
                            .body = ToJsonText(body)};
  const store::Change changes[] = {store::Change::Put(record, store::Due::Unchanged()),
                                   store::Change::Put(newer, store::Due::Never())};
  const auto written = store_->Write(changes).value();
  for (const store::Written& one : written) ASSERT_TRUE(one.applied);
  const auto report = Run();
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code, Code::kInvalid) << report.error().ToString();
  EXPECT_FALSE(IsHeld(Item("orders__0__0")));
  EXPECT_EQ(Item("orders__0__0").attempt, 0);
}

TEST_F(WorkerTest, NameOfAnotherMigrationIsRefused) {
  options_.run.source = "jsonl:a";
  ASSERT_TRUE(Run());
  options_.run.source = "jsonl:b";
  EXPECT_EQ(Run().error().code, Code::kConflict);
  options_.run.name = "not/a/name";
  EXPECT_EQ(Run().error().code, Code::kInvalid);
}

TEST_F(WorkerTest, ReleasedByHandIsLostToItsHolder) {
  auto coordinator = Join("me");
  ASSERT_TRUE(PrepareWork(*coordinator, pipeline_, {}, {}).value());
  LeasedItem item = coordinator->AcquireNext({}).value().value();
  ASSERT_TRUE(ReleaseItem(*store_, "run", item.name()));
  EXPECT_EQ(item.Checkpoint({.position = "000005"}, {}, false).error().code, Code::kLeaseLost);
  EXPECT_EQ(ReleaseItem(*store_, "run", item.name()).error().code, Code::kConflict);
}

// As at PostgreSQL's max_connections.
class BusySink final : public pipeline::SinkWrapper {
 public:
  using SinkWrapper::SinkWrapper;
  Result<std::vector<pipeline::TargetChange>> Prepare(const pipeline::Collection& collection,
                                                      bool evaluate) override {
    if (++tries < 3) return Error{Code::kUnavailable, "too many clients already"};
    return SinkWrapper::Prepare(collection, evaluate);
  }
  int tries = 0;
};

TEST_F(WorkerTest, IdleWorkerReportsWhoseLeaseItWaitsFor) {
  options_.terms.lease = 60s;
  const auto other = Join("other");
  ASSERT_TRUE(PrepareWork(*other, pipeline_, {}, {}).value());
  std::vector<LeasedItem> held;
  while (auto item = other->AcquireNext({}).value()) held.push_back(*std::move(item));
  ASSERT_FALSE(held.empty());
  const std::jthread stopper([this] {
    RealEnv().Sleep(500ms, {});
    stop_.request_stop();
  });
  ASSERT_TRUE(RunWorker(*store_, pipeline_, options_, watcher_, stop_.get_token()));
  const auto said = std::find_if(
      watcher_.waits.begin(), watcher_.waits.end(),
      [](const std::string& what) { return what.find(", held by other until 2") != what.npos; });
  EXPECT_NE(said, watcher_.waits.end());
}

TEST_F(WorkerTest, WorkerReportsWhatItWaitsForWhilePreparing) {
  BusySink busy(sink_);
  pipeline::Pipeline pipeline{.env = RealEnv(),
                              .source = source_,
                              .transforms = *transforms_,
                              .sink = busy,
                              .dead_letters = letters_,
                              .throttle = throttle_,
                              .options = pipeline_.options};
  const auto report = RunWorker(*store_, pipeline, options_, watcher_, stop_.get_token());
  ASSERT_TRUE(report) << report.error().ToString();
  EXPECT_TRUE(report->all_done);
  EXPECT_EQ(watcher_.waits, (std::vector<std::string>{
                                "the sink: preparing run 'run': too many clients already", ""}));
}

TEST_F(WorkerTest, WorkerReportsACallThatDoesNotReturn) {
  const auto unanswered = [](const std::string& party) {
    return "the " + party + ", which has not answered for ";
  };
  FollowedSource source(source_);
  source.before_reading = [&] {
    testing::Await([&] { return watcher_.Waited(unanswered("source")); });
  };
  sink_.fail = [&](size_t) -> Status {
    testing::Await([&] { return watcher_.Waited(unanswered("sink")); });
    return {};
  };
  testing::ShortPauses env;
  pipeline::Pipeline pipeline{.env = env,
                              .source = source,
                              .transforms = *transforms_,
                              .sink = sink_,
                              .dead_letters = letters_,
                              .throttle = throttle_,
                              .options = pipeline_.options};
  const auto report = RunWorker(*store_, pipeline, options_, watcher_, stop_.get_token());
  ASSERT_TRUE(report) << report.error().ToString();
  EXPECT_TRUE(report->all_done);
  EXPECT_TRUE(watcher_.Waited(unanswered("source")));
  EXPECT_TRUE(watcher_.Waited(unanswered("sink")));
  EXPECT_EQ(watcher_.waits.back(), "");
}

TEST_F(WorkerTest, PreparationThatWasInterruptedIsContinued) {
  pipeline::MemorySource many(1);
  for (size_t i = 0; i < 2'500; ++i) many.Add("orders", {std::to_string(i), "{}"});
  pipeline::Pipeline pipeline{.env = RealEnv(),
                              .source = many,
                              .transforms = *transforms_,
                              .sink = sink_,
                              .dead_letters = letters_,
                              .throttle = throttle_};
  auto coordinator = Join("me");
  std::stop_source stop;
  stop.request_stop();
  EXPECT_FALSE(PrepareWork(*coordinator, pipeline, {}, stop.get_token()).value());
  EXPECT_TRUE(PrepareWork(*coordinator, pipeline, {}, {}).value());
  EXPECT_EQ(RunBody::FromJson(store_->Get(kRunKind, "run").value()->body)->pages, 3);
  EXPECT_EQ(PageBody::FromJson(store_->Get(kPageKind, "run/000003").value()->body)->items.size(),
            500u);
  EXPECT_TRUE(store_->Get(kWorkKind, "run/orders__2499__002499").value());
}

}  // namespace
}  // namespace muster::work
