#include "replica/page_reader.h"

#include <gtest/gtest.h>

#include <memory>

#include "muster/env.h"

namespace muster {
namespace {

constexpr int kLimit = 10;

class PageReaderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto log = OpenEventLog("memory:", RealEnv());
    ASSERT_TRUE(log) << log.error().ToString();
    log_ = *std::move(log);
    for (int slot = 0; slot < log_->slots(); ++slot) start_.push_back({slot, 0});
  }

  void Append(int count) {
    for (int i = 0; i < count; ++i) {
      const StreamAppend one{"stream-" + std::to_string(appended_++), 0, {{"Happened", "{}"}}};
      ASSERT_TRUE(log_->Append({&one, 1}));
    }
  }

  std::vector<SlotPosition> After(int64_t position) const {
    std::vector<SlotPosition> slots = start_;
    for (SlotPosition& slot : slots) slot.position = position;
    return slots;
  }

  // The positions of the events of the page behind these slots.
  static std::vector<int64_t> Read(PageReader& reader, const std::vector<SlotPosition>& from,
                                   int64_t* read_to = nullptr) {
    const auto page = reader.Read(from);
    EXPECT_TRUE(page);
    std::vector<int64_t> positions;
    for (const Event& event : page->events) positions.push_back(event.position);
    if (read_to != nullptr) *read_to = page->read_to;
    return positions;
  }

  std::unique_ptr<EventLog> log_;
  std::vector<SlotPosition> start_;
  int appended_ = 0;
};

TEST_F(PageReaderTest, ReadsTheSameAheadAsWithout) {
  Append(35);
  PageReader ahead(*log_, kLimit, true);
  PageReader plain(*log_, kLimit, false);
  int64_t at = 0;
  size_t read = 0;
  while (read < 35) {
    int64_t next = 0;
    const std::vector<int64_t> events = Read(ahead, After(at), &next);
    EXPECT_EQ(events, Read(plain, After(at)));
    ASSERT_FALSE(events.empty());
    read += events.size();
    at = next;
  }
  EXPECT_TRUE(Read(ahead, After(at)).empty());
}

TEST_F(PageReaderTest, WhoGoesBackReadsFromThere) {
  Append(25);
  PageReader ahead(*log_, kLimit, true);
  const std::vector<int64_t> first = Read(ahead, After(0));
  ASSERT_EQ(first.size(), kLimit);
  EXPECT_EQ(Read(ahead, After(0)), first);
}

TEST_F(PageReaderTest, WhatIsAppendedLaterIsReadAsWell) {
  Append(kLimit);
  PageReader ahead(*log_, kLimit, true);
  int64_t at = 0;
  ASSERT_EQ(Read(ahead, After(0), &at).size(), kLimit);
  EXPECT_TRUE(Read(ahead, After(at)).empty());
  Append(3);
  EXPECT_EQ(Read(ahead, After(at)).size(), 3);
}

}  // namespace
}  // namespace muster
