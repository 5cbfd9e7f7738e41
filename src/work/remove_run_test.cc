#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <utility>

#include "pipeline/flow/memory_sink.h"
#include "pipeline/flow/memory_source.h"
#include "store/backends.h"
#include "store/store_wrapper.h"
#include "support/migrate.h"
#include "work/chosen_records.h"
#include "work/coordinator.h"
#include "work/records.h"

namespace muster::work {
namespace {

using namespace std::chrono_literals;

// Writes one change of a request at a time, and after so many none any more: its process is gone.
class MortalStore final : public store::StoreWrapper {
 public:
  using store::StoreWrapper::StoreWrapper;
  Result<std::vector<store::Written>> Write(std::span<const store::Change> changes) override {
    std::vector<store::Written> all;
    for (const store::Change& change : changes) {
      if (left == 0) return Error{Code::kInternal, "dead"};
      --left;
      MUSTER_ASSIGN(const auto written, inner().Write({&change, 1}));
      all.push_back(written.front());
    }
    return all;
  }

  int left = std::numeric_limits<int>::max();
};

class HookedStore final : public store::StoreWrapper {
 public:
  using store::StoreWrapper::StoreWrapper;
  Result<std::vector<store::Written>> Write(std::span<const store::Change> changes) override {
    if (before_write) before_write(changes.front());
    return inner().Write(changes);
  }

  Result<WallTime> Now() override {
    MUSTER_ASSIGN(const WallTime now, inner().Now());
    return now + ahead;
  }

  std::function<void(const store::Change& first)> before_write = {};
  milliseconds ahead{0};
};

class RemoveRunTest : public ::testing::Test {
 protected:
  static constexpr const char* kKinds[] = {"run",     "prepare",       "run_page",   "run_end",
                                           "work",    "budget",        "split_wish", "target",
                                           "redrive", "redrive_lease", "chosen"};

  void SetUp() override {
    for (int i = 0; i < 40; ++i) source_.Add("a", {std::to_string(i), "{}"});
  }
  std::unique_ptr<WorkCoordinator> Join(const std::string& run) {
    auto joined = WorkCoordinator::Join(*store_, RealEnv(), Spec(run), {}, "me").value();
    pipeline::Pipeline pipeline = Pipeline();
    EXPECT_TRUE(PrepareWork(*joined, pipeline, {}, {}).value());
    return joined;
  }
  pipeline::Pipeline Pipeline() {
    return {RealEnv(), source_, *transforms_, *sink_, letters_, throttle_};
  }
  static RunSpec Spec(const std::string& run) {
    return {.name = run, .source = "here", .sink = "there"};
  }
  Result<WorkerReport> Run(const std::string& run) {
    WorkObserver nothing;
    pipeline::Pipeline pipeline = Pipeline();
    return RunWorker(*store_, pipeline, {.run = Spec(run), .worker = "me"}, nothing, {});
  }
  void Put(const char* kind, const std::string& key, const std::string& body) {
    const store::Change change = store::Change::Put(
        store::Record{.kind = kind, .queue = "run", .key = key, .body = body}, store::Due::Never());
    ASSERT_TRUE(store_->Write({&change, 1}).value().front().applied);
  }
  // Of every kind that a run has.
  void MakeRun() {
    ASSERT_TRUE(Run("run"));
    Put(kSplitRequestKind, "run/a__0__0", SplitRequestBody{.by = "x"}.ToJson());
    Put(kRedriveKind, "run/00", RedriveBody().ToJson());
    Put(kRedriveLeaseKind, RedriveLeaseKey("run"), RedrivePageBody().ToJson());
    Put(kChosenKind, "run/i/h", ChosenBody{.target = "t", .collection = "c"}.ToJson());
    Put(kTargetKind, "run/i/h", TargetBody{.target = "t", .identity = "i"}.ToJson());
  }
  int Records(const std::string& run) {
    int found = 0;
    for (const char* kind : kKinds) {
      const auto records = store_->Scan(kind, run, "", store::kMaxBatch).value();
      for (const store::Record& record : records) {
        if (record.queue == run) ++found;
      }
    }
    return found;
  }

  std::unique_ptr<store::Store> store_ = store::NewMemoryStore(RealEnv());
  pipeline::MemorySource source_{20};
  std::unique_ptr<pipeline::MemorySink> sink_ = std::make_unique<pipeline::MemorySink>();
  testing::NoDeadLetters letters_;
  pipeline::Throttle throttle_{RealEnv()};
  std::unique_ptr<pipeline::TransformPlan> transforms_ = pipeline::ParseTransforms("", "").value();
};

TEST_F(RemoveRunTest, ADeletedRunLeavesNothingInTheStore) {
  MakeRun();
  ASSERT_TRUE(Run("run2"));
  const int others = Records("run2");
  const int records = Records("run");
  const auto removal = DeleteRun(*store_, "run", /*force=*/false);
  ASSERT_TRUE(removal) << removal.error().ToString();
  EXPECT_EQ(removal->records, records);
  EXPECT_EQ(removal->sink, "there");
  EXPECT_EQ(removal->counts.written, 40);
  EXPECT_EQ(Records("run"), 0);
  EXPECT_EQ(Records("run2"), others) << "a name that begins like it";
  EXPECT_EQ(sink_->Documents("a").size(), 80u) << "the target stays as it is";
  EXPECT_EQ(DeleteRun(*store_, "run", false).error().code, Code::kNotFound);
  EXPECT_EQ(DeleteRun(*store_, "no/run", false).error().code, Code::kInvalid);
}

TEST_F(RemoveRunTest, RunInProgressIsNotRemoved) {
  const auto coordinator = Join("run");
  LeasedItem item = coordinator->AcquireNext({}).value().value();
  for (const auto& removal :
       {DeleteRun(*store_, "run", false), ResetRun(*store_, "run", false, RealEnv())}) {
    ASSERT_FALSE(removal);
    EXPECT_EQ(removal.error().code, Code::kConflict);
    EXPECT_NE(removal.error().message.find("me holds item a__"), std::string::npos)
        << removal.error().message;
    EXPECT_FALSE(ReadRun(*store_, "run")->removing);
  }
  const auto removal = DeleteRun(*store_, "run", /*force=*/true);
  ASSERT_TRUE(removal);
  EXPECT_EQ(removal->holders, std::vector<std::string>{"me"}) << "which may still write";
  EXPECT_EQ(Records("run"), 0);
  EXPECT_FALSE(item.StillOurs().value());
  const Status saved = item.Checkpoint(item.progress(), std::nullopt, false);
  ASSERT_FALSE(saved);
  EXPECT_EQ(saved.error().code, Code::kLeaseLost);
  EXPECT_NE(saved.error().message.find("is gone from the store"), std::string::npos)
      << "no other process continues: " << saved.error().ToString();
}

TEST_F(RemoveRunTest, ExpiredLeaseDoesNotBlockRemoval) {
  const WorkTerms terms{.lease = 50ms, .max_lease = 50ms};
  auto coordinator = WorkCoordinator::Join(*store_, RealEnv(), Spec("run"), terms, "me").value();
  ASSERT_TRUE(Join("run"));
  const auto item = coordinator->AcquireNext({}).value();
  ASSERT_TRUE(item);
  while (IsHeld(ReadItem(*store_, "run", item->name()).value())) RealEnv().Sleep(1ms, {});
  EXPECT_TRUE(DeleteRun(*store_, "run", false));
}

// At every write: the next call completes what was begun, and until then the run is neither
// continued nor taken for a new or a finished one.
TEST_F(RemoveRunTest, ARemovalThatWasKilledIsContinued) {
  for (const bool resets : {false, true}) {
    for (int writes = 1; writes < 1000; ++writes) {
      SCOPED_TRACE(std::to_string(writes) + " writes");
      store_ = store::NewMemoryStore(RealEnv());
      sink_ = std::make_unique<pipeline::MemorySink>();
      MakeRun();
      MortalStore mortal(*store_);
      mortal.left = writes;
      const auto removal =
          resets ? ResetRun(mortal, "run", false, RealEnv()) : DeleteRun(mortal, "run", false);
      if (removal) break;
      const RunInfo info = ReadRun(*store_, "run").value();
      EXPECT_TRUE(info.removing);
      EXPECT_EQ(RunStateOf(info, ReadTotals(*store_, "run").value()), RunInfo::State::kRemoving);
      EXPECT_EQ(Run("run").error().code, Code::kConflict);
      const auto again =
          resets ? ResetRun(*store_, "run", false, RealEnv()) : DeleteRun(*store_, "run", false);
      ASSERT_TRUE(again) << again.error().ToString();
      EXPECT_EQ(Records("run"), resets ? 2 : 0);
      ASSERT_LT(writes, 900);
    }
  }
}

// Its pages are gone: the run must not be taken for one without items.
TEST_F(RemoveRunTest, AResetRunIsNotMadeReadyByAnEarlierPreparation) {
  HookedStore hooked(*store_);
  const auto late = WorkCoordinator::Join(hooked, RealEnv(), Spec("run"), {}, "late").value();
  bool was_reset = false;
  hooked.before_write = [&](const store::Change& change) {
    const bool makes_ready =
        change.record.kind == kRunKind && RunBody::FromJson(change.record.body).value().ready;
    if (!makes_ready || std::exchange(was_reset, true)) return;
    ASSERT_TRUE(ResetRun(*store_, "run", /*force=*/true, RealEnv()));
  };
  pipeline::Pipeline pipeline = Pipeline();
  EXPECT_FALSE(PrepareWork(*late, pipeline, {}, {}).value());
  EXPECT_TRUE(was_reset);
  EXPECT_FALSE(ReadRun(*store_, "run")->ready);
  Join("run");
  EXPECT_TRUE(ReadRun(*store_, "run")->ready);
  EXPECT_TRUE(store_->Get(kPageKind, PageKey("run", 1)).value());
  EXPECT_EQ(ListItems(*store_, "run", "", 10)->size(), 2U);
}

TEST_F(RemoveRunTest, AResetRunStartsAnew) {
  MakeRun();
  const auto before = RunBody::FromJson(store_->Get(kRunKind, "run").value()->body).value();
  ASSERT_TRUE(ResetRun(*store_, "run", false, RealEnv()));
  const auto after = RunBody::FromJson(store_->Get(kRunKind, "run").value()->body).value();
  EXPECT_NE(after.incarnation, before.incarnation);
  EXPECT_GT(after.since_ms, before.since_ms);
  EXPECT_FALSE(after.adopts);
  EXPECT_FALSE(after.ready);
  EXPECT_EQ(after.source, "here");
  EXPECT_FALSE(ReadRun(*store_, "run")->finished);
  // This sink keeps progress, and says what to do.
  const auto refused = Run("run");
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().hint.find("to start over"), std::string::npos);
}

// This machine's clock may be behind those of others.
TEST_F(RemoveRunTest, AResetRunStartsByTheStoresClockAndLaterThanEveryOther) {
  ASSERT_TRUE(Run("run"));
  ASSERT_TRUE(Run("other"));
  const auto start_of = [&](const std::string& run) {
    return RunBody::FromJson(store_->Get(kRunKind, run).value()->body).value().since_ms;
  };
  HookedStore ahead(*store_);
  ahead.ahead = 1h;
  ASSERT_TRUE(ResetRun(ahead, "other", false, RealEnv()));
  const WallTime soon = RealEnv().WallNow() + 50min;
  EXPECT_GT(start_of("other"), soon.time_since_epoch().count());
  ASSERT_TRUE(ResetRun(*store_, "run", false, RealEnv()));
  EXPECT_GT(start_of("run"), start_of("other"));
}

TEST_F(RemoveRunTest, ARunThatCannotBeReadCanBeDeletedButNotReset) {
  MakeRun();
  auto record = store_->Get(kRunKind, "run").value().value();
  record.body = "[]";
  const store::Change change = store::Change::Put(record, store::Due::Never());
  ASSERT_TRUE(store_->Write({&change, 1}));
  EXPECT_EQ(ResetRun(*store_, "run", false, RealEnv()).error().code, Code::kCorrupt);
  ASSERT_TRUE(DeleteRun(*store_, "run", false));
  EXPECT_EQ(Records("run"), 0);
}

}  // namespace
}  // namespace muster::work
