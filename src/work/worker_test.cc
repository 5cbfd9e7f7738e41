#include "work/worker.h"

#include <gtest/gtest.h>

#include <map>

#include "store/backends.h"

namespace muster {
namespace {

using namespace std::chrono_literals;

class WorkerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(CreateItems(*store_, "work", "q", {"a", "b", "c"}));
    options_.terms = {.lease = 10s, .max_lease = 60s, .max_attempts = 3};
    options_.idle_wait = 1ms;
    options_.retry_delay = 1ms;
  }

  Status Run(const ItemHandler& handler) {
    return RunWorker(
        *store_, RealEnv(), options_, handler,
        [this](const Lease& lease, ItemOutcome outcome) {
          outcomes_[lease.key()].push_back(outcome);
        },
        stop_.get_token());
  }

  ItemState State(const std::string& key) {
    return ItemState::FromBody(store_->Get("work", key).value().value().body).value();
  }

  std::unique_ptr<Store> store_ = NewMemoryStore(RealEnv());
  WorkerOptions options_{.queue = "q", .owner = "me"};
  std::stop_source stop_;
  std::map<std::string, std::vector<ItemOutcome>> outcomes_;
};

TEST_F(WorkerTest, HandlesEveryItemAndEnds) {
  std::vector<std::string> handled;
  ASSERT_TRUE(Run([&](Lease& lease, std::stop_token) {
    handled.push_back(lease.key());
    return Result<std::string>("1");
  }));
  EXPECT_EQ(handled.size(), 3u);
  EXPECT_TRUE(AllSettled(*store_, "work", "q").value());
  EXPECT_EQ(State("b").phase, ItemState::Phase::kDone);
}

TEST_F(WorkerTest, FailureIsTriedAgainAndThenQuarantinedWithItsError) {
  int tries = 0;
  ASSERT_TRUE(Run([&](Lease& lease, std::stop_token) -> Result<std::string> {
    if (lease.key() != "b") return std::string("1");
    ++tries;
    return Error{Code::kInternal, "boom"};
  }));
  EXPECT_EQ(tries, 3);
  EXPECT_EQ(State("a").phase, ItemState::Phase::kDone);
  EXPECT_EQ(State("b").phase, ItemState::Phase::kQuarantined);
  EXPECT_EQ(State("b").error, "boom");
  EXPECT_EQ(outcomes_["b"],
            (std::vector{ItemOutcome::kFailed, ItemOutcome::kFailed, ItemOutcome::kQuarantined}));
}

TEST_F(WorkerTest, ItemWhoseHoldersDisappearIsQuarantinedUnseen) {
  Record record = store_->Get("work", "a").value().value();
  record.attempt = 3;
  const Change change = Change::Put(record, Due::Now());
  ASSERT_TRUE(store_->Write({&change, 1}));
  bool seen = false;
  ASSERT_TRUE(Run([&](Lease& lease, std::stop_token) {
    seen = seen || lease.key() == "a";
    return Result<std::string>("1");
  }));
  EXPECT_FALSE(seen);
  EXPECT_EQ(State("a").phase, ItemState::Phase::kQuarantined);
}

TEST_F(WorkerTest, ProgressKeepsAFailingItemOutOfQuarantine) {
  int tries = 0;
  ASSERT_TRUE(Run([&](Lease& lease, std::stop_token) -> Result<std::string> {
    if (lease.key() != "b" || ++tries > 8) return std::string("9");
    MUSTER_TRY(lease.Checkpoint(std::to_string(tries)));
    return Error{Code::kUnavailable, "sink went away"};
  }));
  EXPECT_EQ(tries, 9);
  EXPECT_EQ(State("b").phase, ItemState::Phase::kDone);
}

TEST_F(WorkerTest, StopReleasesTheItemInHand) {
  ASSERT_TRUE(Run([&](Lease&, std::stop_token stop) -> Result<std::string> {
    stop_.request_stop();
    EXPECT_TRUE(stop.stop_requested());
    return Error{Code::kCancelled, "asked to stop"};
  }));
  ASSERT_EQ(outcomes_.size(), 1u);
  EXPECT_EQ(outcomes_.begin()->second, std::vector{ItemOutcome::kReleased});
  EXPECT_FALSE(AllSettled(*store_, "work", "q").value());
}

TEST_F(WorkerTest, LostLeaseIsLeftToItsNewHolder) {
  bool lost = false;
  ASSERT_TRUE(Run([&](Lease& lease, std::stop_token) -> Result<std::string> {
    if (lost) return std::string("1");
    lost = true;
    Record record = store_->Get("work", lease.key()).value().value();
    record.owner = "somebody else";
    const Change change = Change::Put(record, Due::Now());
    EXPECT_TRUE(store_->Write({&change, 1}));
    MUSTER_TRY(lease.Checkpoint("1"));
    return std::string("never");
  }));
  EXPECT_TRUE(AllSettled(*store_, "work", "q").value());
  int lost_count = 0;
  for (const auto& [key, outcomes] : outcomes_) {
    lost_count +=
        static_cast<int>(std::count(outcomes.begin(), outcomes.end(), ItemOutcome::kLost));
  }
  EXPECT_EQ(lost_count, 1);
}

TEST_F(WorkerTest, CreatingItemsAgainChangesNothing) {
  ASSERT_TRUE(Run([](Lease&, std::stop_token) { return Result<std::string>("1"); }));
  ASSERT_TRUE(CreateItems(*store_, "work", "q", {"a", "b", "c", "d"}));
  EXPECT_EQ(State("a").phase, ItemState::Phase::kDone);
  EXPECT_EQ(State("d").phase, ItemState::Phase::kOpen);
}

}  // namespace
}  // namespace muster
