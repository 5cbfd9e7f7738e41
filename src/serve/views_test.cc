// The cost of views, and that they write nothing, measured at the store.

#include "serve/views.h"

#include <gtest/gtest.h>

#include <atomic>

#include "pipeline/pipeline.h"
#include "serve/routes.h"
#include "store/store_wrapper.h"
#include "support/temporary_folder.h"
#include "work/item_body.h"
#include "work/records.h"

namespace muster::serve {
namespace {

constexpr int kRuns = 50;
constexpr int kItemsPerRun = 4'000;
constexpr int kItems = kRuns * kItemsPerRun;

class CountedStore final : public store::StoreWrapper {
 public:
  using store::StoreWrapper::StoreWrapper;

  Result<std::vector<store::Record>> Scan(std::string_view kind, std::string_view prefix,
                                          std::string_view after, int limit) override {
    auto records = inner().Scan(kind, prefix, after, limit);
    if (records && kind == work::kWorkKind) items += static_cast<int>(records->size());
    ++calls;
    return records;
  }
  Result<std::optional<store::Record>> Get(std::string_view kind, std::string_view key) override {
    ++calls;
    return inner().Get(kind, key);
  }
  Result<std::vector<store::Written>> Write(std::span<const store::Change> changes) override {
    ++writes;
    return inner().Write(changes);
  }
  Result<std::vector<store::Record>> Claim(const store::ClaimRequest& request) override {
    ++writes;
    return inner().Claim(request);
  }

  int items = 0;
  int calls = 0;
  int writes = 0;
};

class ViewsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    site_ = Site::Open({.stores = {"memory:"},
                        .shared = &store_,
                        .replica_files = {},
                        .dead_letters = folder_.path(),
                        .make_executor = {}},
                       env_)
                .value();
    views_.emplace(*site_, *letters_, jobs_, metrics_);
  }

  void AddRun(const std::string& run, int items) {
    const work::RunBody body{
        .incarnation = "i", .ready = true, .source = "s", .sink = "t", .transforms = ""};
    Put(store::Change::Put(
        {.kind = work::kRunKind, .queue = run, .key = run, .body = body.ToJson()},
        muster::store::Due::Never()));
    std::vector<store::Change> batch;
    for (int i = 0; i < items; ++i) {
      batch.push_back(work::NewItem(run, work::ItemBody::Of({.collection = "c", .shard = i})));
      if (batch.size() < static_cast<size_t>(store::kMaxBatch) && i + 1 < items) continue;
      ASSERT_TRUE(inner_->Write(batch));
      batch.clear();
    }
  }

  void Put(const store::Change& change) {
    ASSERT_TRUE(inner_->Write({&change, 1})->front().applied);
  }

  void Finish(const std::string& run, int shard) {
    const std::string key =
        work::NewItem(run, work::ItemBody::Of({.collection = "c", .shard = shard})).record.key;
    store::Record record = *inner_->Get(work::kWorkKind, key).value();
    work::ItemBody body = work::ItemBody::FromJson(record.body).value();
    body.state = work::ItemBody::State::kDone;
    record.body = body.ToJson();
    Put(store::Change::Put(record, muster::store::Due::Never()));
  }

  Json Overview() { return views_->ReadOverview({}).value(); }

  Env& env_ = RealEnv();
  testing::TemporaryFolder folder_;
  std::unique_ptr<store::Store> inner_ = store::OpenStore("memory:", env_).value();
  CountedStore store_{*inner_};
  std::unique_ptr<Site> site_;
  Metrics metrics_;
  Jobs jobs_{1};
  std::unique_ptr<DeadLetterIndex> letters_ = std::make_unique<DeadLetterIndex>(folder_.path());
  std::optional<Views> views_;
};

TEST_F(ViewsTest, OverviewRefreshCostDoesNotDependOnTheNumberOfItems) {
  for (int i = 0; i < kRuns; ++i) AddRun("run" + std::to_string(i), kItemsPerRun);
  const auto refresh = [&] {
    store_.items = store_.calls = 0;
    return Overview();
  };
  EXPECT_EQ(refresh()["work"]["0/run7"]["waiting"], kItemsPerRun);
  EXPECT_GE(store_.items, kItems);
  Finish("run7", kItemsPerRun / 2);
  int refreshes = 0;
  for (bool seen = false; !seen; ++refreshes) {
    ASSERT_LE(refreshes, kItems / (RunTallies::kMaxPages / 2 * store::kMaxBatch));
    const Json overview = refresh();
    EXPECT_LE(store_.items, RunTallies::kMaxPages * store::kMaxBatch);
    EXPECT_LE(store_.calls, RunTallies::kMaxPages + 5 * kRuns);
    seen = overview["work"]["0/run7"]["done"] == 1;
    EXPECT_EQ(overview["work"]["0/run7"]["items"], kItemsPerRun);
  }
  std::cout << "a change was seen after " << refreshes << " refreshes\n";
}

TEST_F(ViewsTest, SmallStoresAreReadCompletelyEveryTime) {
  AddRun("a", 2'500);
  AddRun("b", 10);
  EXPECT_EQ(Overview()["work"]["0/a"]["items"], 2'500);
  for (int shard = 0; shard < 2'500; shard += 250) Finish("a", shard);
  EXPECT_EQ(Overview()["work"]["0/a"]["done"], 10);
  // Items added later are counted, whatever their keys.
  std::vector<store::Change> more;
  for (int i = 0; i < 900; ++i) {
    more.push_back(
        work::NewItem("a", work::ItemBody::Of({.collection = i % 2 == 0 ? "b" : "d", .shard = i})));
  }
  ASSERT_TRUE(inner_->Write(more));
  EXPECT_EQ(Overview()["work"]["0/a"]["items"], 3'400);
  EXPECT_EQ(Overview()["work"]["0/b"]["items"], 10);
}

// Files keep letters that were redriven, and a second one has those that failed again.
TEST_F(ViewsTest, FailuresAreNoMoreThanTheRunCounts) {
  AddRun("r", 1);
  const auto add_letters = [&](const std::string& run, const std::string& name, int many) {
    const auto letters = pipeline::OpenDeadLetters(folder_.At(name), run).value();
    for (int i = 0; i < many; ++i) {
      const std::string id = std::to_string(i);
      ASSERT_TRUE(letters->Add(
          {.collection = "c",
           .target = "c",
           .item = "c__0__0",
           .document = {.id = id, .routing = {}, .body = "{}", .position = id, .defect = {}},
           .reason = "refused",
           .transformed = true}));
    }
    ASSERT_TRUE(letters->Flush());
  };
  const auto set_failed = [&](int64_t failed) {
    const std::string key =
        work::NewItem("r", work::ItemBody::Of({.collection = "c", .shard = 0})).record.key;
    store::Record record = *inner_->Get(work::kWorkKind, key).value();
    work::ItemBody body = work::ItemBody::FromJson(record.body).value();
    body.progress.counts = {.read = 10, .written = 10 - failed, .failed = failed};
    record.body = body.ToJson();
    Put(store::Change::Put(record, muster::store::Due::Never()));
  };
  add_letters("r", "r.dead-letters.jsonl", 5);
  add_letters("r", "r.dead-letters.jsonl.again", 3);
  add_letters("standalone", "dead-letters.jsonl", 2);
  set_failed(5);
  EXPECT_EQ(Overview()["failures_total"], 5 + 2);
  set_failed(3);
  EXPECT_EQ(Overview()["failures_total"], 3 + 2);
  set_failed(0);
  EXPECT_EQ(Overview()["failures_total"], 2) << "of no run that a store knows";
  EXPECT_EQ(Overview()["dead_letters"], 10) << "what the files have";
}

TEST_F(ViewsTest, DeletedRunIsNotShown) {
  AddRun("a", 3);
  AddRun("b", 3);
  EXPECT_EQ(Overview()["work"].size(), 2U);
  const store::Change change = store::Change::Delete(*inner_->Get(work::kRunKind, "a").value());
  Put(change);
  EXPECT_EQ(Overview()["work"].size(), 1U);
}

TEST_F(ViewsTest, NoViewWritesToAStore) {
  AddRun("run", 3);
  const Names names[] = {{"0", "run", "c__0__0", "x"}, {"0", "none", "extract", "none"}};
  for (const Route& route : Routes()) {
    const auto* read = std::get_if<ReadView>(&route.handler);
    if (read == nullptr) continue;
    for (const Names& some : names) static_cast<void>((*views_.*(*read))(some));
  }
  EXPECT_EQ(store_.writes, 0);
  EXPECT_GT(store_.calls, 10);
}

}  // namespace
}  // namespace muster::serve
