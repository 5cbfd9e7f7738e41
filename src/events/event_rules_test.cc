#include "events/event_rules.h"

#include <gtest/gtest.h>

#include <set>

namespace muster::events {
namespace {

TEST(SlotOf, NeverChanges) {
  EXPECT_EQ(SlotOf("order-1", 128), 105);
  EXPECT_EQ(SlotOf("order-2", 128), 74);
  EXPECT_EQ(SlotOf("", 128), 115);
}

TEST(SlotOf, SpreadsStreamsThatDifferOnlyInANumber) {
  std::vector<int> counts(64);
  for (int i = 0; i < 6400; ++i) ++counts[SlotOf("order-" + std::to_string(i), 64)];
  for (const int count : counts) {
    EXPECT_GT(count, 50);
    EXPECT_LT(count, 150);
  }
}

TEST(NextWindow, IncludesOnlySlotsBeforeItsEnd) {
  const std::vector<SlotPosition> from{{0, 100}, {1, 5'000}, {2, 120}};
  const ReadWindow window = NextWindow(from, 6, 10, 1'000'000, 0);
  EXPECT_EQ(window.end, 100 + 21);
  EXPECT_EQ(window.slots, (std::vector<SlotPosition>{{0, 100}, {2, 120}}));
}

TEST(NextWindow, EndsAtTheHorizonAndWidensOnRequest) {
  const std::vector<SlotPosition> from{{0, 0}};
  EXPECT_EQ(NextWindow(from, 1, 10, 5, 0).end, 5);
  EXPECT_EQ(NextWindow(from, 1, 10, 1'000, 3).end, 88);
  EXPECT_TRUE(NextWindow(from, 1, 10, 0, 0).slots.empty());
}

TEST(CheckAppends, RejectsInvalidAppends) {
  const auto refused = [](const StreamAppend& append) { return !CheckAppends({&append, 1}); };
  EXPECT_TRUE(refused({"", kAnyVersion, {{"T"}}}));
  EXPECT_TRUE(refused({std::string(kMaxStreamBytes + 1, 'x'), kAnyVersion, {{"T"}}}));
  EXPECT_TRUE(refused({"s", kAnyVersion, {{""}}}));
  EXPECT_TRUE(refused({"s", kAnyVersion, {{"T", "\xff"}}}));
  EXPECT_TRUE(refused({"s", kAnyVersion, {{"T", std::string("a\0b", 3)}}}));
  EXPECT_TRUE(refused({"s", -7, {{"T"}}}));
  EXPECT_FALSE(refused({"s", kAnyVersion, {{"T", "not JSON, which is allowed here"}}}));
}

TEST(CheckSlotCount, NamesBothNumbers) {
  EXPECT_TRUE(CheckSlotCount(0, 128));
  EXPECT_TRUE(CheckSlotCount(128, 128));
  const Status refused = CheckSlotCount(64, 128);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kIncompatible);
  EXPECT_NE(refused.error().message.find("128 slots, not 64"), std::string::npos);
}

}  // namespace
}  // namespace muster::events
