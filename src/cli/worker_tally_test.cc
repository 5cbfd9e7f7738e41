#include "cli/worker_tally.h"

#include <gtest/gtest.h>

#include <sstream>

#include "core/virtual_env.h"

namespace muster::cli {
namespace {

constexpr const char* kSink = "the sink, which has not answered for 9s";

class WorkerTallyTest : public ::testing::Test {
 protected:
  // What is shown after `change`.
  template <class Change>
  std::string ShownAfter(Change change) {
    env_.Sleep(std::chrono::seconds(5), {});
    out_.str("");
    change();
    return out_.str();
  }

  VirtualEnv env_;
  std::ostringstream out_;
  Progress progress_{ProgressMode::kPlain, out_, env_, "documents", 0, [] { return 80; }};
  WorkerTally tally_{progress_};
};

TEST_F(WorkerTallyTest, NoTimeLeftIsShownWhileTheWholeRunWaits) {
  EXPECT_EQ(ShownAfter([&] { tally_.SetRun("run: 1 of 2 items", "15s left", true); }),
            "documents: 0, 0.0/s; run: 1 of 2 items, 15s left\n");
  EXPECT_EQ(ShownAfter([&] { tally_.Waits(kSink); }),
            std::string("documents: 0, 0.0/s; waiting for ") + kSink + "; run: 1 of 2 items\n");
  EXPECT_EQ(ShownAfter([&] { tally_.SetRun("run: 1 of 2 items", "30s left", false); }),
            std::string("documents: 0, 0.0/s; waiting for ") + kSink + "; run: 1 of 2 items\n");
  tally_.Waits("");
  EXPECT_EQ(ShownAfter([&] { tally_.SetRun("run: 2 of 2 items", "3s left", true); }),
            "documents: 0, 0.0/s; run: 2 of 2 items, 3s left\n");
}

TEST_F(WorkerTallyTest, TheTimeLeftOfARunThatOthersAdvanceIsShown) {
  tally_.Waits("item a__0__0, held by other");
  EXPECT_EQ(ShownAfter([&] { tally_.SetRun("run: 1 of 2 items", "15s left", true); }),
            "documents: 0, 0.0/s; waiting for item a__0__0, held by other; run: 1 of 2 items, "
            "15s left\n");
}

}  // namespace
}  // namespace muster::cli
