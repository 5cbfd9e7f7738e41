#include "muster/store.h"

#include <gtest/gtest.h>

#include "core/virtual_env.h"
#include "store/backends.h"
#include "store/unlucky_store.h"

namespace muster::store {
namespace {

class UpdateTest : public ::testing::Test {
 protected:
  using Luck = UnluckyStore::Luck;

  // Adds one to the number in the record; one that does not exist is zero.
  Status Increment() { return Update(store_, "counter", "a", Increments()); }

  UpdateFunction Increments() {
    return [this](std::optional<Record> stored) -> Result<std::optional<Change>> {
      ++runs_;
      Record record =
          std::move(stored).value_or(Record{.kind = "counter", .queue = "q", .key = "a"});
      if (record.version == 0) record.body = "0";
      record.body = std::to_string(std::stoi(record.body) + 1);
      return Change::Put(std::move(record), Due::Never());
    };
  }

  void OtherIncrements() {
    ASSERT_TRUE(Update(*truth_, "counter", "a", Increments()));
    --runs_;
  }
  std::string Stored() { return truth_->Get("counter", "a").value().value().body; }

  VirtualEnv env_;
  std::unique_ptr<Store> truth_ = NewMemoryStore(env_);
  UnluckyStore store_{*truth_};
  int runs_ = 0;
};

TEST_F(UpdateTest, RecordIsCreatedThenChanged) {
  ASSERT_TRUE(Increment());
  EXPECT_EQ(Stored(), "1");
  ASSERT_TRUE(Increment());
  EXPECT_EQ(Stored(), "2");
}

TEST_F(UpdateTest, NoChangeWritesNothing) {
  ASSERT_TRUE(Increment());
  const int writes = store_.writes;
  ASSERT_TRUE(Update(store_, "counter", "a",
                     [](auto&&) -> Result<std::optional<Change>> { return std::nullopt; }));
  EXPECT_EQ(store_.writes, writes);
}

TEST_F(UpdateTest, RefusalIsReturnedAndNotRetried) {
  int runs = 0;
  const Status refused =
      Update(store_, "counter", "a", [&](auto&&) -> Result<std::optional<Change>> {
        ++runs;
        return Error{Code::kConflict, "no"};
      });
  EXPECT_EQ(refused.error().code, Code::kConflict);
  EXPECT_EQ(runs, 1);
}

TEST_F(UpdateTest, WriteWithALostResponseIsNotMadeTwice) {
  store_.next = {Luck::kGood, Luck::kLostReply};
  ASSERT_TRUE(Increment());
  EXPECT_EQ(Stored(), "1");
  EXPECT_EQ(runs_, 1);
}

TEST_F(UpdateTest, LostWriteIsRetried) {
  store_.next = {Luck::kGood, Luck::kLostRequest, Luck::kDown};
  ASSERT_TRUE(Increment());
  EXPECT_EQ(Stored(), "1");
}

TEST_F(UpdateTest, DeletionWithALostResponseSucceeds) {
  ASSERT_TRUE(Increment());
  store_.next = {Luck::kGood, Luck::kLostReply};
  ASSERT_TRUE(Update(store_, "counter", "a", [](std::optional<Record> stored) {
    return Result<std::optional<Change>>(Change::Delete(*std::move(stored)));
  }));
  EXPECT_FALSE(truth_->Get("counter", "a").value());
}

TEST_F(UpdateTest, ConcurrentWriteIsReadAgain) {
  bool raced = false;
  const UpdateFunction increment = Increments();
  ASSERT_TRUE(Update(store_, "counter", "a", [&](std::optional<Record> stored) {
    if (!std::exchange(raced, true)) OtherIncrements();
    return increment(std::move(stored));
  }));
  EXPECT_EQ(Stored(), "2");
  EXPECT_EQ(runs_, 2);
}

TEST_F(UpdateTest, RefusalAfterAnUnknownOutcomeIsNotReportedAsFailure) {
  int runs = 0;
  const UpdateFunction increment = Increments();
  store_.next = {Luck::kGood, Luck::kLostReply};
  // Another writer comes before it is read back.
  store_.on_wait = [this] { OtherIncrements(); };
  const Status doubtful = Update(
      store_, "counter", "a", [&](std::optional<Record> stored) -> Result<std::optional<Change>> {
        if (++runs > 1) return Error{Code::kConflict, "no"};
        return increment(std::move(stored));
      });
  EXPECT_EQ(doubtful.error().code, Code::kUnknownOutcome);
}

TEST_F(UpdateTest, UpdateGivesUpWhenOthersKeepChangingTheRecord) {
  const UpdateFunction increment = Increments();
  const Status updated = Update(store_, "counter", "a", [&](std::optional<Record> stored) {
    OtherIncrements();
    return increment(std::move(stored));
  });
  EXPECT_EQ(updated.error().code, Code::kUnavailable);
  EXPECT_EQ(runs_, 20);
}

TEST_F(UpdateTest, GivesUpIfTheStoreStaysUnavailable) {
  store_.down = true;
  EXPECT_EQ(Increment().error().code, Code::kUnavailable);
  EXPECT_EQ(runs_, 0);
}

}  // namespace
}  // namespace muster::store
