#include "replica/batch_size.h"

#include <gtest/gtest.h>

namespace muster::replica {
namespace {

using namespace std::chrono_literals;

TEST(BatchSize, GrowsToTheMaximumWhileBatchesAreFast) {
  BatchSize batch(1'000, 1s);
  EXPECT_LE(batch.size(), 32u);
  for (int i = 0; i < 6; ++i) batch.Handled(batch.size(), 10ms);
  EXPECT_EQ(batch.size(), 1'000u);
  // A partial batch says nothing.
  BatchSize idle(1'000, 1s);
  const size_t before = idle.size();
  idle.Handled(1, 1ms);
  EXPECT_EQ(idle.size(), before);
}

TEST(BatchSize, FitsABatchIntoTheTime) {
  BatchSize batch(1'000, 1s);
  // 15 ms per event.
  for (int i = 0; i < 20; ++i) {
    const size_t size = batch.size();
    batch.Handled(size, 15ms * static_cast<int>(size));
    EXPECT_LE(batch.size() * 15, 1'000u);
  }
  EXPECT_GE(batch.size() * 15, 400u);
  // Longer than the target even for a single event.
  batch.Handled(batch.size(), 10min);
  batch.Handled(batch.size(), 25s);
  EXPECT_EQ(batch.size(), 1u);
}

TEST(BatchSize, ShrinksAFailingBatchToOneEvent) {
  BatchSize batch(1'000, 1s);
  for (int i = 0; i < 6; ++i) batch.Handled(batch.size(), 1ms);
  int failures = 0;
  while (batch.size() > 1) {
    batch.Failed(batch.size());
    ++failures;
  }
  EXPECT_LE(failures, 4);
  // The rest of the failed batch is handled in small ones; then the size grows again.
  batch.Handled(1, 1ms);
  EXPECT_EQ(batch.size(), 1u);
  for (int i = 0; i < 40; ++i) batch.Handled(batch.size(), 1ms);
  EXPECT_EQ(batch.size(), 1'000u);
}

}  // namespace
}  // namespace muster::replica
