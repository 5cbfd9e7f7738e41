// Appends to the log in memory that commit late.

#include <gtest/gtest.h>

#include "core/virtual_env.h"
#include "events/backends.h"

namespace muster::events {
namespace {

class LateCommits : public ::testing::Test {
 protected:
  int64_t Begin(const std::string& stream, int events) {
    const StreamAppend append{stream, kAnyVersion, std::vector<NewEvent>(events, {"Happened"})};
    return log->Begin({&append, 1}).value();
  }

  Status Append(const std::string& stream) {
    const StreamAppend append{stream, kAnyVersion, {{"Happened"}}};
    const auto appended = log->Append({&append, 1});
    return appended ? Status() : appended.error();
  }

  // Positions of the visible events after one, and how far they were read.
  std::pair<std::vector<int64_t>, int64_t> ReadAfter(int64_t position) {
    const SlotPosition from[] = {{0, position}, {1, position}};
    const EventPage slots = log->Read(from, 100).value();
    const EventPage all = log->ReadAll(position, 100).value();
    EXPECT_EQ(slots.events, all.events);
    EXPECT_EQ(slots.read_to, all.read_to);
    std::pair<std::vector<int64_t>, int64_t> read{{}, all.read_to};
    for (const Event& event : all.events) read.first.push_back(event.position);
    return read;
  }

  using Read = std::pair<std::vector<int64_t>, int64_t>;

  VirtualEnv env;
  std::unique_ptr<MemoryLog> log = NewMemoryEventLog(env, 2);
};

TEST_F(LateCommits, HoldReadersBackUntilNothingCanAppearBehindThem) {
  ASSERT_TRUE(Append("a"));
  const int64_t first = Begin("b", 2);
  ASSERT_TRUE(Append("c"));
  const int64_t second = Begin("d", 1);
  ASSERT_TRUE(Append("e"));
  EXPECT_EQ(ReadAfter(0), Read({1}, 1));
  log->Commit(second);
  EXPECT_EQ(ReadAfter(1), Read({}, 1));
  log->Commit(first);
  EXPECT_EQ(ReadAfter(1), Read({2, 3, 4, 5, 6}, 6));
}

TEST_F(LateCommits, AreSeenByNoReaderOfTheirStream) {
  ASSERT_TRUE(Append("a"));
  const int64_t transaction = Begin("a", 2);
  EXPECT_EQ(log->ReadStream("a", 0, 10)->size(), 1u);
  EXPECT_EQ(*log->Last(), 1);
  EXPECT_EQ(log->MarksAt(std::vector<int64_t>{3})->front().position, 1);
  log->Commit(transaction);
  log->Commit(transaction);
  EXPECT_EQ(log->ReadStream("a", 0, 10)->size(), 3u);
  EXPECT_EQ(*log->Last(), 3);
}

TEST_F(LateCommits, LockTheirStream) {
  const int64_t transaction = Begin("a", 1);
  EXPECT_EQ(Append("a").error().code, Code::kUnavailable);
  EXPECT_TRUE(Append("b"));
  log->Commit(transaction);
  EXPECT_TRUE(Append("a"));
  EXPECT_EQ(log->ReadStream("a", 0, 10)->size(), 2u);
}

TEST_F(LateCommits, HideEventsOfTheirSlotFromThereOn) {
  const int64_t transaction = Begin("a", 1);
  const int slot = SlotOf("a", 2);
  EXPECT_FALSE(log->Hides({slot, 0}));
  EXPECT_TRUE(log->Hides({slot, 1}));
  EXPECT_FALSE(log->Hides({1 - slot, 1}));
  log->Commit(transaction);
  EXPECT_FALSE(log->Hides({slot, 1}));
}

}  // namespace
}  // namespace muster::events
