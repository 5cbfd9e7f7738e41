// `muster events`, called by a script.

#include <gtest/gtest.h>

#include <fstream>

#include "cli/program.h"

namespace muster::testing {
namespace {

class EventsCommand : public ::testing::Test {
 protected:
  // `lines` from a file, by a shell.
  Outcome Append(const std::string& lines) {
    std::ofstream(folder_ / "lines") << lines;
    return RunCommand({"sh", "-c", MUSTER_PROGRAM " events append sqlite:log.db < lines"},
                      folder_.path());
  }
  std::string CountOf(const std::string& log) {
    return RunCommand({"sh", "-c", MUSTER_PROGRAM " events read " + log + " | wc -l"},
                      folder_.path())
        .out;
  }

  TempFolder folder_;
};

std::string Lines(int count) {
  std::string lines;
  for (int i = 0; i < count; ++i) {
    lines += R"({"stream":"s)" + std::to_string(i % 7) + R"(","type":"T"})" + "\n";
  }
  return lines;
}

TEST_F(EventsCommand, AppendThatFailsHalfWayReportsTheNextLine) {
  const std::string good = Lines(10'000);
  const Outcome failed = Append(good + Lines(5) + "garbage\n");
  EXPECT_EQ(NotAClearError(failed, 2), "") << failed.err;
  EXPECT_NE(failed.err.find("line 10006"), std::string::npos) << failed.err;
  EXPECT_NE(failed.err.find("lines 1 to 10000 are in the log"), std::string::npos) << failed.err;
  EXPECT_NE(failed.err.find("tail -n +10001"), std::string::npos) << failed.err;
  EXPECT_EQ(CountOf("sqlite:log.db"), "10000\n");
}

TEST_F(EventsCommand, TooLargeEventIsReportedWithItsLine) {
  const std::string large(9'000'000, 'x');
  const Outcome failed =
      Append(Lines(2) + R"({"stream":"s","type":"T","payload":")" + large + "\"}\n");
  EXPECT_EQ(failed.exit_code, 2);
  EXPECT_NE(failed.err.find("line 3: "), std::string::npos) << failed.err;
}

TEST_F(EventsCommand, ReadingAMissingLogDoesNotCreateIt) {
  const Outcome failed = RunMuster({"events", "read", "sqlite:lgo.db"}, folder_.path());
  EXPECT_EQ(NotAClearError(failed, 5), "") << failed.err;
  EXPECT_EQ(folder_.Snapshot().size(), 0u);
}

TEST_F(EventsCommand, ByteOrderMarkIsSkipped) {
  const Outcome appended = Append(
      "\xEF\xBB\xBF"
      R"({"stream":"s","type":"T","payload":{}})"
      "\r\n");
  EXPECT_EQ(appended.exit_code, 0) << appended.err;
  EXPECT_EQ(CountOf("sqlite:log.db"), "1\n");
}

}  // namespace
}  // namespace muster::testing
