#include "work/run_summary.h"

#include <gtest/gtest.h>

#include "work/item_body.h"
#include "work/records.h"
#include "work/settled_letters.h"

namespace muster::work {
namespace {

using namespace std::chrono_literals;

ItemInfo Done(int64_t read) {
  ItemInfo item;
  item.state = ItemInfo::State::kDone;
  item.progress.counts.read = read;
  return item;
}

ItemInfo HeldAt(int64_t read, double fraction, double rate) {
  ItemInfo item;
  item.holder = "somebody";
  item.due_in = 10s;
  item.progress.counts.read = read;
  item.fraction = fraction;
  item.docs_per_second = rate;
  item.recent = {.documents = 10 * rate, .span = 10s};
  return item;
}

RunTotals TotalsOf(const std::vector<ItemInfo>& items) {
  RunSummary sum;
  for (const ItemInfo& item : items) sum.Add(item);
  return sum.Totals(Redriven());
}

TEST(RunSummaryTest, UnstartedRunHasNoEstimate) {
  const RunTotals totals = TotalsOf({ItemInfo{}});
  EXPECT_FALSE(totals.documents);
  EXPECT_FALSE(TimeLeft(totals, 100));
  EXPECT_EQ(totals.waiting, 1);
}

TEST(RunSummaryTest, ItemWithoutAHolderShowsItsLastFailure) {
  RunInfo run;
  run.ready = true;
  const ItemInfo fresh;
  EXPECT_EQ(WhyItem(fresh), "waiting for a worker");
  EXPECT_EQ(WhyRun(run, TotalsOf({fresh})),
            "no worker holds an item: start one with 'muster worker'");
  ItemInfo failed;
  failed.error = "sink: connection refused";
  EXPECT_EQ(WhyItem(failed), "waiting for a worker; last failure: sink: connection refused");
  EXPECT_EQ(WhyRun(run, TotalsOf({fresh, failed})),
            "no worker holds an item: start one with 'muster worker', unless some are waiting "
            "after the last failure: sink: connection refused");
}

TEST(RunSummaryTest, WaitingItemsAreEstimatedLikeTheOthers) {
  const RunTotals totals = TotalsOf({Done(1000), HeldAt(500, 0.5, 100), ItemInfo{}, ItemInfo{}});
  EXPECT_DOUBLE_EQ(totals.documents.value(), 4000);
  EXPECT_EQ(TimeLeft(totals, totals.docs_per_second).value(), 25s);
  EXPECT_EQ(TimeLeft(totals, 500).value(), 5s);
}

TEST(RunSummaryTest, TheRunTakesAsLongAsItsSlowestHolder) {
  const RunTotals totals = TotalsOf({HeldAt(990, 0.99, 1000), HeldAt(100, 0.1, 10)});
  EXPECT_EQ(TimeLeft(totals, totals.docs_per_second).value(), 90s);
}

TEST(RunSummaryTest, ItemsDoneBetweenTwoLooksHaveARate) {
  ItemInfo done = Done(1000);
  done.recent = {.documents = 600, .span = 20s};
  const ItemInfo done_long_ago = Done(5000);
  const ItemInfo begun = HeldAt(0, 0, 0);
  EXPECT_DOUBLE_EQ(TotalsOf({done, done_long_ago, begun}).docs_per_second, 30);
}

TEST(RunSummaryTest, ItemStartedInTheFutureHasNoRate) {
  const auto store = store::OpenStore("memory:", RealEnv()).value();
  const WallTime now = store->Now().value();
  std::vector<store::Change> changes;
  for (const int shard : {0, 1}) {
    // Started, or done, under a clock that was set back since.
    ItemBody item = ItemBody::Of(pipeline::Partition{.collection = "c", .shard = shard});
    item.progress.counts.read = 1200;
    item.since_ms = (now + 1h).time_since_epoch().count();
    item.until_ms = (now + 1h + 10s).time_since_epoch().count();
    item.fraction = 0.5;
    if (shard == 1) item.state = ItemBody::State::kDone;
    store::Change change = NewItem("r", item);
    change.record.owner = "a worker";
    changes.push_back(std::move(change));
  }
  ASSERT_TRUE(store->Write(changes));
  const auto totals = ReadTotals(*store, "r");
  ASSERT_TRUE(totals) << totals.error().ToString();
  EXPECT_DOUBLE_EQ(totals->docs_per_second, 0);
  EXPECT_FALSE(TimeLeft(*totals, totals->docs_per_second));
  EXPECT_DOUBLE_EQ(ReadItem(*store, "r", "c__0__0")->docs_per_second, 0);
}

// An earlier version counted letters by line number, which may since have been others.
TEST(RunSummaryTest, NoRedriveSettlesMoreThanHasFailed) {
  const auto store = store::OpenStore("memory:", RealEnv()).value();
  ItemBody item = ItemBody::Of(pipeline::Partition{.collection = "c"});
  item.state = ItemBody::State::kDone;
  item.progress.counts = {.read = 10, .written = 7, .failed = 3};
  const std::vector<store::Change> changes = {
      NewItem("r", item),
      store::Change::Put(
          store::Record{.kind = kRedriveKind,
                        .queue = "r",
                        .key = "r/0123456789abcdef",
                        .body = R"({"lines":9,"read":9,"written":2,"skipped":9,"failed":0})"},
          store::Due::Never())};
  ASSERT_TRUE(store->Write(changes));
  const auto totals = ReadTotals(*store, "r");
  ASSERT_TRUE(totals) << totals.error().ToString();
  EXPECT_EQ(totals->counts,
            (pipeline::Counts{.read = 10, .written = 9, .skipped = 1, .failed = 0}));
}

TEST(RunSummaryTest, ARedriveCountsTheSameInEveryView) {
  const auto store = store::OpenStore("memory:", RealEnv()).value();
  std::vector<store::Change> changes;
  for (const int shard : {0, 1}) {
    ItemBody item = ItemBody::Of(pipeline::Partition{.collection = "c", .shard = shard});
    item.state = ItemBody::State::kDone;
    item.progress.counts = {.read = 10, .written = 7, .failed = 3};
    changes.push_back(NewItem("r", item));
  }
  ASSERT_TRUE(store->Write(changes));
  SettledLetters letters(*store, "r");
  // The first digits of an identity choose the record.
  const std::vector<SettledLetter> settled{
      {1, "c__0__0"}, {2, "c__0__0"}, {uint64_t{1} << 60, "c__1__0"}};
  const pipeline::Counts outcome{.read = 3, .written = 2, .skipped = 1};
  ASSERT_TRUE(letters.Add(settled, outcome));
  ASSERT_TRUE(letters.Add(settled, outcome)) << "known ones are not counted again";
  const auto totals = ReadTotals(*store, "r");
  ASSERT_TRUE(totals) << totals.error().ToString();
  EXPECT_EQ(totals->counts,
            (pipeline::Counts{.read = 20, .written = 16, .skipped = 1, .failed = 3}));
  pipeline::Counts listed;
  ASSERT_TRUE(EachItem(*store, "r", [&](const ItemInfo& item) { listed += item.counts; }));
  EXPECT_EQ(listed, totals->counts);
  EXPECT_EQ(ReadItem(*store, "r", "c__0__0")->counts.failed, 1);
  EXPECT_EQ(ReadItem(*store, "r", "c__1__0")->counts.failed, 2);
  EXPECT_EQ(ListItems(*store, "r", "", 10)->at(1).counts.failed, 2);
}

TEST(RunSummaryTest, ARedriveCountsAllThatWasMadeOfALetter) {
  const auto store = store::OpenStore("memory:", RealEnv()).value();
  ItemBody item = ItemBody::Of(pipeline::Partition{.collection = "c"});
  item.state = ItemBody::State::kDone;
  item.progress.counts = {.read = 10, .written = 7, .failed = 3};
  const store::Change change = NewItem("r", item);
  ASSERT_TRUE(store->Write({&change, 1}));
  SettledLetters letters(*store, "r");
  const std::vector<SettledLetter> settled{{uint64_t{9} << 60, "c__0__0"}, {2, "c__0__0"}};
  // Seven documents were made of two letters, four of which were refused.
  const pipeline::Counts outcome{.read = 2, .written = 2, .skipped = 1, .failed = 4, .added = 5};
  ASSERT_TRUE(letters.Add(settled, outcome));
  const pipeline::Counts expected{.read = 10, .written = 9, .skipped = 1, .failed = 5, .added = 5};
  EXPECT_EQ(ReadTotals(*store, "r")->counts, expected);
  EXPECT_EQ(ReadItem(*store, "r", "c__0__0")->counts, expected);
  ASSERT_TRUE(letters.Add(settled, outcome));
  ASSERT_TRUE(letters.Add({settled[1], settled[0]}, outcome)) << "as after a crash half-way";
  EXPECT_EQ(ReadTotals(*store, "r")->counts, expected);
}

TEST(RunSummaryTest, SourcesEstimateIsUsedUntilTheItemStarts) {
  ItemInfo waiting;
  waiting.partition.documents = 3000;
  EXPECT_DOUBLE_EQ(TotalsOf({HeldAt(500, 0.5, 100), waiting}).documents.value(), 4000);
}

}  // namespace
}  // namespace muster::work
