#include "cli/progress.h"

#include <gtest/gtest.h>

#include <sstream>

#include "core/json.h"
#include "core/virtual_env.h"

namespace muster::cli {
namespace {

class ProgressTest : public testing::Test {
 protected:
  void Pass(int milliseconds) { env_.Pass(std::chrono::milliseconds(milliseconds)); }

  VirtualEnv env_;
  std::ostringstream out_;
};

TEST_F(ProgressTest, PlainPrintsALineEveryFiveSecondsAndAFinalOne) {
  Progress progress(ProgressMode::kPlain, out_, env_, "copy", 200, [] { return 80; });
  progress.Update(1);
  Pass(4999);
  progress.Update(40);
  EXPECT_EQ(out_.str(), "");
  Pass(1);
  progress.Update(50);
  progress.Update(60);
  EXPECT_EQ(out_.str(), "copy: 50 of 200 (25%), 10/s, 15s left\n");
  Pass(5000);
  progress.Update(200);
  progress.Finish();
  progress.Finish();
  EXPECT_EQ(out_.str(),
            "copy: 50 of 200 (25%), 10/s, 15s left\n"
            "copy: 200 of 200 (100%), 20/s\n"
            "copy: 200 of 200 (100%), 20/s\n");
}

TEST_F(ProgressTest, RateExcludesTheWorkOfEarlierProcesses) {
  Progress progress(ProgressMode::kPlain, out_, env_, "copy", 2000, [] { return 80; });
  progress.SetEarlier(1000);
  Pass(10'000);
  progress.Update(1100);
  EXPECT_EQ(out_.str(), "copy: 1100 of 2000 (55%), 10/s, 1m30s left\n");
  out_.str("");
  Pass(10'000);
  progress.Update(900);
  EXPECT_EQ(out_.str(), "copy: 900 of 2000 (45%), 0.0/s\n");
}

TEST_F(ProgressTest, TheTimeLeftIsNotEstimatedWhileTheJobWaits) {
  Progress progress(ProgressMode::kPlain, out_, env_, "run", 200, [] { return 80; });
  progress.Estimate(false);
  Pass(5000);
  progress.Update(50);
  EXPECT_EQ(out_.str(), "run: 50 of 200 (25%), 10/s\n");
  out_.str("");
  progress.Estimate(true);
  Pass(5000);
  progress.Update(100);
  EXPECT_EQ(out_.str(), "run: 100 of 200 (50%), 10/s, 10s left\n");
}

TEST_F(ProgressTest, TheBarIsRedrawnInPlaceAndFitsTheTerminal) {
  int width = 60;
  Progress progress(ProgressMode::kTty, out_, env_, "copy", 200, [&] { return width; });
  progress.Update(0);
  Pass(10'000);
  out_.str("");
  progress.Update(100);
  EXPECT_EQ(out_.str(), "\r[#########.........] copy: 100 of 200 (50%), 10/s, 10s left\x1b[K");
  out_.str("");
  width = 20;
  Pass(100);
  progress.Update(100);
  EXPECT_EQ(out_.str(), "\rcopy: 100 of 200 (5\x1b[K");
  Pass(99);
  out_.str("");
  progress.Update(101);
  EXPECT_EQ(out_.str(), "");
}

TEST_F(ProgressTest, JsonIsOneObjectALine) {
  Progress progress(ProgressMode::kJson, out_, env_, "copy \"x\"", 0, [] { return 80; });
  Pass(2000);
  progress.Update(5);
  progress.Update(6, 8);
  progress.Finish();
  std::istringstream lines(out_.str());
  std::string line;
  std::getline(lines, line);
  EXPECT_EQ(line, R"({"progress":{"label":"copy \"x\"","done":5,"per_second":2.5}})");
  std::getline(lines, line);
  EXPECT_EQ(line, R"({"progress":{"label":"copy \"x\"","done":6,"total":8,"per_second":3.0}})");
  EXPECT_FALSE(std::getline(lines, line));
}

TEST_F(ProgressTest, NoneIsSilent) {
  Progress progress(ProgressMode::kNone, out_, env_, "copy", 10, [] { return 80; });
  Pass(60'000);
  progress.Update(10);
  progress.Finish();
  EXPECT_EQ(out_.str(), "");
}

TEST_F(ProgressTest, LongTimesAndMoreThanTheTotalAreShownSensibly) {
  Progress progress(ProgressMode::kPlain, out_, env_, "copy", 10'000, [] { return 80; });
  Pass(5000);
  progress.Update(3);
  Pass(5000);
  progress.Update(20'000);
  EXPECT_EQ(out_.str(),
            "copy: 3 of 10000 (0%), 0.6/s, 4h37m left\n"
            "copy: 20000 of 10000 (100%), 2000/s\n");
}

TEST_F(ProgressTest, AutoDependsOnTheTerminal) {
  EXPECT_EQ(ParseProgressMode("auto", true).value(), ProgressMode::kTty);
  EXPECT_EQ(ParseProgressMode("auto", false).value(), ProgressMode::kPlain);
  EXPECT_EQ(ParseProgressMode("json", true).value(), ProgressMode::kJson);
  EXPECT_EQ(ParseProgressMode("fast", true).error().code, Code::kInvalid);
}

}  // namespace
}  // namespace muster::cli
