#include "replica/pace.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

using namespace std::chrono_literals;

TEST(Pace, GrowsToTheMostWhileBatchesAreQuick) {
  Pace pace(1'000, 1s);
  EXPECT_LE(pace.size(), 32u);
  for (int i = 0; i < 6; ++i) pace.Handled(pace.size(), 10ms);
  EXPECT_EQ(pace.size(), 1'000u);
  // What was not a full batch says nothing.
  Pace idle(1'000, 1s);
  const size_t before = idle.size();
  idle.Handled(1, 1ms);
  EXPECT_EQ(idle.size(), before);
}

TEST(Pace, FitsABatchIntoTheTime) {
  Pace pace(1'000, 1s);
  // 15 ms an event.
  for (int i = 0; i < 20; ++i) {
    const size_t size = pace.size();
    pace.Handled(size, 15ms * static_cast<int>(size));
    EXPECT_LE(pace.size() * 15, 1'000u);
  }
  EXPECT_GE(pace.size() * 15, 400u);
  // Slower than the time for a single event.
  pace.Handled(pace.size(), 10min);
  pace.Handled(pace.size(), 25s);
  EXPECT_EQ(pace.size(), 1u);
}

TEST(Pace, CutsABatchThatFailsDownToOneEvent) {
  Pace pace(1'000, 1s);
  for (int i = 0; i < 6; ++i) pace.Handled(pace.size(), 1ms);
  int failures = 0;
  while (pace.size() > 1) {
    pace.Failed(pace.size());
    ++failures;
  }
  EXPECT_LE(failures, 4);
  // The rest of the batch that failed is handled in small ones; then it grows again.
  pace.Handled(1, 1ms);
  EXPECT_EQ(pace.size(), 1u);
  for (int i = 0; i < 40; ++i) pace.Handled(pace.size(), 1ms);
  EXPECT_EQ(pace.size(), 1'000u);
}

}  // namespace
}  // namespace muster
