#include "work/error_budget.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <set>
#include <thread>
#include <utility>

#include "pipeline/flow/memory_sink.h"
#include "pipeline/flow/memory_source.h"
#include "store/backends.h"
#include "store/store_wrapper.h"
#include "support/migrate.h"
#include "work/coordinator.h"

namespace muster::work {
namespace {

using namespace std::chrono_literals;

// Counts the scans of items that go through it.
class ScannedStore final : public store::StoreWrapper {
 public:
  using store::StoreWrapper::StoreWrapper;
  Result<std::vector<store::Record>> Scan(std::string_view kind, std::string_view prefix,
                                          std::string_view after, int limit) override {
    if (kind == kWorkKind) ++scans;
    if (kind == kWorkKind) std::this_thread::sleep_for(scan_takes);
    auto found = inner().Scan(kind, prefix, after, limit);
    if (kind == kWorkKind && after_scan) std::exchange(after_scan, {})();
    return found;
  }

  std::atomic<int> scans = 0;
  milliseconds scan_takes{0};
  std::function<void()> after_scan = {};  // of items, once
};

// 400 documents in 20 items; the sink refuses some.
class ErrorBudgetTest : public ::testing::Test {
 protected:
  static constexpr int kDocuments = 400;

  void SetUp() override {
    for (int i = 0; i < kDocuments; ++i) source_.Add("a", {std::to_string(i), "{}"});
    options_.terms = {.lease = 10s,
                      .max_lease = 60s,
                      .checkpoint_interval = 1h,
                      .retry_delay = 1ms,
                      .idle_wait = 1ms,
                      .max_attempts = 3};
    Refuse(1);
  }

  // Every n-th document.
  void Refuse(int n) {
    sink_.refuse = [n](const pipeline::Document& document) {
      const int id = std::stoi(std::string(document.id));
      return id % n == 0 ? "field [n] has no room for '" + std::to_string(id) + "'" : "";
    };
  }
  Result<WorkerReport> Run(std::optional<FailureLimit> limit = {}) {
    options_.run.max_failures = limit;
    return RunWorker(store_, pipeline_, options_, nothing_, {});
  }
  RunInfo Info() { return ReadRun(store_, "run").value(); }
  RunTotals Totals() { return ReadTotals(store_, "run").value(); }

  const std::unique_ptr<store::Store> records_ = store::NewMemoryStore(RealEnv());
  ScannedStore store_{*records_};
  pipeline::MemorySource source_{20};
  pipeline::MemorySink sink_;
  testing::NoDeadLetters letters_;
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
  WorkObserver nothing_;
};

TEST_F(ErrorBudgetTest, ARunStopsWhenMoreThanItsLimitFail) {
  const auto stopped = Run(FailureLimit{.documents = 12});
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().code, Code::kIncompatible);
  EXPECT_EQ(stopped.error().message.substr(0, 64),
            "run 'run' is stopped: more than 12 of its documents have failed:");
  EXPECT_NE(stopped.error().message.find("for this reason: field [n] has no room for '…'; for "
                                         "example document '"),
            std::string::npos)
      << stopped.error().message;
  EXPECT_NE(stopped.error().hint.find("--max-failures"), std::string::npos);
  EXPECT_GT(Totals().counts.failed, 12);
  EXPECT_LT(Totals().counts.failed, 40);
  EXPECT_EQ(Totals().held, 0);
  EXPECT_EQ(RunStateOf(Info(), Totals()), RunInfo::State::kStopped);
  EXPECT_EQ(WhyRun(Info(), Totals()).substr(0, 35), "stopped: more than 12 of its docume");
  EXPECT_FALSE(Info().finished);
  EXPECT_TRUE(sink_.FinishedCollections().empty());
}

TEST_F(ErrorBudgetTest, AStoppedRunStaysStoppedForAllWorkers) {
  ASSERT_FALSE(Run(FailureLimit{.documents = 12}));
  const RunTotals before = Totals();
  options_.worker = "another";
  for (const std::optional<FailureLimit>& limit :
       {std::optional<FailureLimit>(), std::optional(FailureLimit{.documents = 12})}) {
    const auto again = Run(limit);
    ASSERT_FALSE(again);
    EXPECT_EQ(again.error().code, Code::kIncompatible);
  }
  EXPECT_EQ(Totals().counts, before.counts);
}

TEST_F(ErrorBudgetTest, StoppedRunContinuesWithAHigherLimit) {
  ASSERT_FALSE(Run(FailureLimit{.documents = 12}));
  const auto more = Run(FailureLimit{.documents = 50});
  ASSERT_FALSE(more) << "which is exceeded, too";
  EXPECT_EQ(Info().max_failures.ToString(), "50");
  const auto all = Run(FailureLimit{.percent = 100});
  ASSERT_TRUE(all) << all.error().ToString();
  EXPECT_TRUE(all->all_done);
  EXPECT_TRUE(Info().finished);
  EXPECT_EQ(Info().stopped, "");
  EXPECT_EQ(Totals().counts.read, kDocuments);
  EXPECT_EQ(Totals().counts.failed, kDocuments);
  ASSERT_EQ(Totals().reasons.size(), 1u);
  EXPECT_EQ(Totals().reasons[0].count, kDocuments);
}

TEST_F(ErrorBudgetTest, DocumentsThatScriptsAddedCountAsDocuments) {
  const FailureLimit limit{.percent = 100};
  EXPECT_FALSE(limit.IsExceeded({.read = 1'000, .failed = 10'000, .added = 9'000}));
  EXPECT_TRUE(
      FailureLimit{.percent = 50}.IsExceeded({.read = 1'000, .failed = 1'001, .added = 1'000}));
}

TEST_F(ErrorBudgetTest, StoppedRunContinuesOnceEnoughIsRedriven) {
  ASSERT_FALSE(Run(FailureLimit{.documents = 12}));
  RedriveBody redriven;
  redriven.total.written = Totals().counts.failed;
  const store::Change change = store::Change::Put(
      store::Record{
          .kind = kRedriveKind, .queue = "run", .key = "run/00", .body = redriven.ToJson()},
      store::Due::Never());
  ASSERT_TRUE(store_.Write({&change, 1}));
  sink_.refuse = {};
  const auto report = Run();
  ASSERT_TRUE(report) << report.error().ToString();
  EXPECT_TRUE(Info().finished);
  EXPECT_EQ(Totals().counts.failed, 0);
}

TEST_F(ErrorBudgetTest, FewerThanHalfOfAThousandDoNotStopARun) {
  ASSERT_TRUE(Run());
  EXPECT_TRUE(Info().finished);
  EXPECT_EQ(Totals().counts.failed, kDocuments);
}

TEST_F(ErrorBudgetTest, MoreThanHalfOfTheFirstThousandStopARun) {
  for (int i = 0; i < 1000; ++i) source_.Add("b", {std::to_string(i), "{}"});
  ASSERT_FALSE(Run());
  EXPECT_GT(Totals().counts.failed, 500);
  EXPECT_LT(Totals().counts.failed, 550);
}

TEST_F(ErrorBudgetTest, FailuresUpToTheLimitDoNotStopARun) {
  Refuse(40);
  ASSERT_TRUE(Run(FailureLimit{.documents = 10}));
  EXPECT_EQ(Totals().counts.failed, 10);
  EXPECT_TRUE(Info().finished);
}

// Its items are all done, and yet it is not finished.
TEST_F(ErrorBudgetTest, UnnoticedFailuresStopTheRunBeforeItsEnd) {
  Refuse(40);
  ASSERT_TRUE(Run(FailureLimit{.documents = 10}));
  auto coordinator =
      WorkCoordinator::Join(
          store_, RealEnv(),
          {.name = "run", .new_incarnation = true, .max_failures = FailureLimit{.documents = 9}},
          options_.terms, "me")
          .value();
  EXPECT_FALSE(Info().finished);
  const auto end = coordinator->budget().CountAll();
  ASSERT_FALSE(end);
  EXPECT_EQ(end.error().hint, kStoppedHint);
  EXPECT_NE(Info().stopped, "");
  const auto report = Run();
  ASSERT_FALSE(report);
  EXPECT_FALSE(Info().finished);
}

TEST_F(ErrorBudgetTest, FailuresFromBeforeAResetDoNotStopTheNewStart) {
  ASSERT_TRUE(Run(FailureLimit{.percent = 100}));
  const RunSpec run{.name = "run", .max_failures = FailureLimit{.documents = 9}};
  const auto late = WorkCoordinator::Join(store_, RealEnv(), run, options_.terms, "late").value();
  store_.after_scan = [&] { ASSERT_TRUE(ResetRun(store_, "run", /*force=*/true, RealEnv())); };
  EXPECT_TRUE(late->budget().CountAll());
  EXPECT_FALSE(store_.after_scan) << "it counts what was there before";
  EXPECT_EQ(Info().stopped, "");
}

TEST_F(ErrorBudgetTest, ManyWorkersStopTogether) {
  options_.terms.checkpoint_interval = 0ms;
  Refuse(4);
  std::atomic<int> stopped = 0;
  std::vector<std::jthread> workers;
  for (int i = 0; i < 8; ++i) {
    workers.emplace_back([&, i] {
      WorkerOptions options = options_;
      options.worker = "w" + std::to_string(i);
      options.slots = 2;
      options.run.max_failures = FailureLimit{.documents = 20};
      WorkObserver nothing;
      const auto report = RunWorker(store_, pipeline_, options, nothing, {});
      if (!report && report.error().hint == kStoppedHint) ++stopped;
    });
  }
  workers.clear();
  EXPECT_EQ(stopped, 8);
  EXPECT_EQ(Totals().held, 0);
  EXPECT_FALSE(Info().finished);
}

TEST_F(ErrorBudgetTest, CountingTakesASmallPartOfTheTime) {
  options_.terms.checkpoint_interval = 0ms;
  store_.scan_takes = 20ms;
  ASSERT_TRUE(Run(FailureLimit{.documents = 1'000}));
  // 80 batches, all with failures: one count at their beginning, and the scans of the end.
  EXPECT_LT(store_.scans, 12);
}

TEST_F(ErrorBudgetTest, AnItemShowsWhyItsDocumentsFailed) {
  Refuse(2);
  ASSERT_TRUE(Run(FailureLimit{.percent = 100}));
  const ItemInfo item = ListItems(store_, "run", "", 1).value().front();
  ASSERT_EQ(item.reasons.size(), 1u);
  EXPECT_EQ(item.reasons[0].reason, "field [n] has no room for '…'");
  EXPECT_EQ(item.reasons[0].count, item.counts.failed);
  EXPECT_EQ(item.reasons[0].message, "field [n] has no room for '" + item.reasons[0].id + "'");
}

}  // namespace
}  // namespace muster::work
