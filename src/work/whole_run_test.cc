#include "work/whole_run.h"

#include <gtest/gtest.h>

#include <utility>

#include "pipeline/flow/memory_sink.h"
#include "pipeline/flow/memory_source.h"
#include "store/backends.h"
#include "store/store_wrapper.h"
#include "work/coordinator.h"
#include "work/item_body.h"
#include "work/records.h"

namespace muster::work {
namespace {

class NoLetters final : public pipeline::DeadLetters {
 public:
  Status Add(const pipeline::DeadLetter&) override { return {}; }
  Status Flush() override { return {}; }
};

// 40 documents of one collection, in two partitions.
class WholeRunTest : public ::testing::Test {
 protected:
  WholeRunTest() {
    for (int i = 0; i < 40; ++i) source_.Add("a", {std::to_string(i), "{}"});
  }

  std::unique_ptr<WorkCoordinator> Join(const std::string& run) {
    auto joined = WorkCoordinator::Join(*store_, RealEnv(), {.name = run}, {}, "me").value();
    EXPECT_TRUE(PrepareWork(*joined, pipeline_, {}, {}).value());
    return joined;
  }
  static LeasedItem Acquire(WorkCoordinator& coordinator) {
    return coordinator.AcquireNext({}).value().value();
  }

  std::vector<std::string> Kinds() {
    std::vector<std::string> found;
    for (const char* kind : {"run", "prepare", "run_page", "run_end", "work", "split_wish"}) {
      if (!store_->Scan(kind, "", "", 10)->empty()) found.emplace_back(kind);
    }
    return found;
  }

  std::unique_ptr<store::Store> store_ = store::NewMemoryStore(RealEnv());
  pipeline::MemorySource source_{20};
  pipeline::MemorySink sink_;
  NoLetters letters_;
  pipeline::Throttle throttle_{RealEnv()};
  std::unique_ptr<pipeline::TransformPlan> transforms_ = pipeline::ParseTransforms("", "").value();
  pipeline::Pipeline pipeline_{RealEnv(), source_, *transforms_, sink_, letters_, throttle_};
};

TEST_F(WholeRunTest, PartsThatWereSplitOffFollowTheirItem) {
  const auto coordinator = Join("run");
  LeasedItem first = Acquire(*coordinator);
  ASSERT_EQ(first.name(), "a__0__0");
  EXPECT_EQ(ItemsInOrder(*store_, "run").error().code, Code::kIncompatible) << "nothing is done";
  pipeline::Progress progress = first.progress();
  for (const size_t end : {15, 5}) {
    progress = progress.CutAt(pipeline::MemorySource::PositionOf(end));
    ASSERT_TRUE(first.Split(progress, std::nullopt));
  }
  ASSERT_TRUE(first.Complete(progress));
  for (int i = 0; i < 3; ++i) {
    LeasedItem item = Acquire(*coordinator);
    progress = item.progress();
    if (item.name() == "a__0__000005") {
      progress = progress.CutAt(pipeline::MemorySource::PositionOf(10));
      ASSERT_TRUE(item.Split(progress, std::nullopt));
    }
    ASSERT_TRUE(item.Complete(progress));
  }
  LeasedItem last = Acquire(*coordinator);
  ASSERT_TRUE(last.Complete(last.progress()));
  std::vector<std::string> names;
  const std::vector<ItemInfo> items = ItemsInOrder(*store_, "run").value();
  for (const ItemInfo& item : items) names.push_back(item.name);
  EXPECT_EQ(names, (std::vector<std::string>{"a__0__0", "a__0__000005", "a__0__000010",
                                             "a__0__000015", "a__1__000020"}));
}

TEST_F(WholeRunTest, AnItemOfAnotherRangeMeansThatTheSourceHasChanged) {
  const auto joined = WorkCoordinator::Join(*store_, RealEnv(), {.name = "run"}, {}, "me").value();
  // Left by a preparation that was killed before it had written its page.
  pipeline::Partition partition = source_.Partitions("a")->front();
  partition.end = pipeline::MemorySource::PositionOf(7);
  const store::Change item = NewItem("run", ItemBody::Of(partition));
  ASSERT_TRUE(store_->Write({&item, 1}));
  EXPECT_EQ(PrepareWork(*joined, pipeline_, {}, {}).error().code, Code::kConflict);
}

TEST_F(WholeRunTest, AMissingItemMakesARunIncomplete) {
  const auto coordinator = Join("run");
  const auto items = store_->Scan("work", "", "", 10).value();
  const store::Change gone = store::Change::Delete(items.front());
  ASSERT_TRUE(store_->Write({&gone, 1}));
  EXPECT_EQ(ItemsInOrder(*store_, "run").error().code, Code::kIncompatible);
  EXPECT_EQ(ReleaseAll(*store_, "other").error().code, Code::kIncompatible);
}

TEST_F(WholeRunTest, ReleasedItemsCanBeAcquiredAtOnce) {
  const auto coordinator = Join("run");
  LeasedItem gone = Acquire(*coordinator);
  LeasedItem other = Acquire(*coordinator);
  EXPECT_FALSE(coordinator->AcquireNext({}).value());
  ASSERT_TRUE(ReleaseAll(*store_, "run"));
  EXPECT_EQ(Acquire(*coordinator).fence().epoch, 2);
  EXPECT_EQ(Acquire(*coordinator).fence().epoch, 2);
  EXPECT_EQ(gone.Complete(gone.progress()).error().code, Code::kLeaseLost);
}

TEST_F(WholeRunTest, PreparationIsReleasedToo) {
  const auto coordinator =
      WorkCoordinator::Join(*store_, RealEnv(), {.name = "run"}, {}, "me").value();
  ASSERT_EQ(store_->Claim({.kind = "prepare", .queue = "run", .owner = "gone", .claim_id = "1"})
                .value()
                .size(),
            1U);
  EXPECT_FALSE(PrepareWork(*coordinator, pipeline_, {}, {}).value());
  ASSERT_TRUE(ReleaseAll(*store_, "run"));
  EXPECT_TRUE(PrepareWork(*coordinator, pipeline_, {}, {}).value());
}

TEST_F(WholeRunTest, PreparationIsReleasedThoughItsHolderSavesMeanwhile) {
  const auto coordinator =
      WorkCoordinator::Join(*store_, RealEnv(), {.name = "run"}, {}, "me").value();
  auto held = store::Lease::Claim(
                  *store_, {.kind = kPrepareKind, .queue = "run", .owner = "holder"}, RealEnv(), {})
                  .value();
  ASSERT_EQ(held.size(), 1U);
  class SavingStore final : public store::StoreWrapper {
   public:
    SavingStore(store::Store& store, store::Lease& lease) : StoreWrapper(store), lease_(lease) {}
    Result<std::vector<store::Written>> Write(std::span<const store::Change> changes) override {
      if (!std::exchange(saved_, true)) {
        EXPECT_TRUE(lease_.Renew(PrepareBody{.collection = 1}.ToJson()));
      }
      return inner().Write(changes);
    }

   private:
    store::Lease& lease_;
    bool saved_ = false;
  } saving(*store_, held.front());
  ASSERT_TRUE(ReleaseAll(saving, "run"));
  EXPECT_TRUE(PrepareWork(*coordinator, pipeline_, {}, {}).value());
}

TEST_F(WholeRunTest, PreparationOfAnotherIncarnationIsLeftAlone) {
  Join("run");
  const store::Record before = store_->Get(kPrepareKind, "run").value().value();
  ASSERT_TRUE(BeginPreparation(*store_, "run", "another"));
  EXPECT_EQ(store_->Get(kPrepareKind, "run").value(), before);
  ASSERT_TRUE(BeginPreparation(*store_, "run", ReadRun(*store_, "run")->incarnation));
  EXPECT_NE(store_->Get(kPrepareKind, "run").value(), before);
}

TEST_F(WholeRunTest, ARunIsRemovedByItsIncarnationAndOthersStay) {
  Join("run");
  ASSERT_TRUE(RemoveRun(*store_, "run", "another"));
  EXPECT_EQ(Kinds(), (std::vector<std::string>{"run", "prepare", "run_page", "work"}));
  Join("run2");
  ASSERT_TRUE(RemoveRun(*store_, "run", ReadRun(*store_, "run")->incarnation));
  EXPECT_EQ(ReadRun(*store_, "run").error().code, Code::kNotFound);
  EXPECT_TRUE(ListItems(*store_, "run", "", 10)->empty());
  EXPECT_EQ(ListItems(*store_, "run2", "", 10)->size(), 2U);
  ASSERT_TRUE(RemoveRun(*store_, "run2", ReadRun(*store_, "run2")->incarnation));
  EXPECT_TRUE(Kinds().empty());
}

}  // namespace
}  // namespace muster::work
