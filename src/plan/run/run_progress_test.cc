#include "muster/runs.h"

#include <gtest/gtest.h>

namespace muster::plan {
namespace {

using std::chrono::seconds;

const WallTime kStart{std::chrono::hours(1)};

TaskReport Task(const std::string& name, PartState state, int64_t expected) {
  return {.phase = Phase::kExtract,
          .name = name,
          .first_state = "Extract-1-" + name,
          .state = state,
          .expected_rows = expected};
}

TEST(RunProgress, ARankEndsWhenItsRowsAreDoneAtTheRateSoFar) {
  RankReport rank{.number = 1, .name = "", .state = PartState::kRunning};
  rank.tasks = {Task("A", PartState::kSucceeded, 900), Task("B", PartState::kRunning, 500),
                Task("C", PartState::kWaiting, 700)};
  rank.tasks[0].rows = 1'000;
  rank.tasks[0].start = kStart;
  rank.tasks[0].stop = kStart + seconds(5);
  rank.tasks[1].start = kStart + seconds(5);
  const RunProgress progress =
      ProgressOf({.ranks = {rank}}, {.rows = {{"Extract-1-B", 200}}}, kStart + seconds(10));
  EXPECT_EQ(progress.tasks, 3U);
  EXPECT_EQ(progress.done, 1U);
  ASSERT_EQ(progress.running.size(), 1U);
  const RankProgress& one = progress.running[0];
  EXPECT_EQ(one.rows, 1'200);
  EXPECT_EQ(one.expected_rows, 2'200);
  EXPECT_DOUBLE_EQ(one.rows_per_s, 120);
  EXPECT_DOUBLE_EQ(*one.left_s, 1'000.0 / 120);
}

TEST(RunProgress, RunsRateIsUsedUntilTheRankHasOne) {
  RankReport first{.number = 1, .name = "", .state = PartState::kSucceeded};
  first.tasks = {Task("A", PartState::kSucceeded, 100)};
  first.tasks[0].rows = 100;
  first.tasks[0].start = kStart;
  RankReport second{.number = 2, .name = "", .state = PartState::kRunning};
  second.tasks = {Task("B", PartState::kRunning, 50)};
  second.tasks[0].start = kStart + seconds(10);
  const auto progress = ProgressOf({.ranks = {first, second}}, {}, kStart + seconds(10));
  ASSERT_EQ(progress.running.size(), 1U);
  EXPECT_DOUBLE_EQ(*progress.running[0].left_s, 5);
  // Unknown without any rows.
  EXPECT_FALSE(ProgressOf({.ranks = {second}}, {}, kStart + seconds(20)).running[0].left_s);
}

TEST(RunProgress, TimeLeftIsUnknownWhileATaskWaitsForItsRetry) {
  RankReport rank{.number = 1, .name = "", .state = PartState::kRunning};
  rank.tasks = {Task("A", PartState::kSucceeded, 100), Task("B", PartState::kRunning, 100),
                Task("C", PartState::kRunning, 100)};
  rank.tasks[0].start = kStart;
  rank.tasks[1].retry = {.failed = 1, .of = 3, .next = kStart + seconds(90)};
  rank.tasks[2].retry = {.failed = 1, .of = 3, .next = kStart + seconds(60)};
  const auto progress = ProgressOf({.ranks = {rank}}, {}, kStart + seconds(10));
  ASSERT_EQ(progress.running.size(), 1U);
  EXPECT_FALSE(progress.running[0].left_s);
  EXPECT_EQ(progress.running[0].next_retry, kStart + seconds(60));
}

TEST(RunProgress, TimeWithoutADriverDoesNotCount) {
  RankReport rank{.number = 1, .name = "", .state = PartState::kRunning};
  rank.tasks = {Task("A", PartState::kSucceeded, 900), Task("B", PartState::kRunning, 600)};
  rank.tasks[0].rows = 900;
  rank.tasks[0].start = kStart;
  rank.tasks[0].stop = kStart + seconds(5);
  rank.tasks[1].start = kStart + seconds(5);
  const WallTime resumed = kStart + std::chrono::hours(2);
  const RunProgress progress = ProgressOf(
      {.ranks = {rank}}, {.rows = {{"Extract-1-B", 200}}, .since = resumed}, resumed + seconds(10));
  ASSERT_EQ(progress.running.size(), 1U);
  EXPECT_EQ(progress.running[0].rows, 1'100);
  EXPECT_DOUBLE_EQ(progress.running[0].rows_per_s, 20);
  EXPECT_DOUBLE_EQ(*progress.running[0].left_s, 20);
}

}  // namespace
}  // namespace muster::plan
