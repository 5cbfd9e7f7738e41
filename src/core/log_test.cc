#include "core/log.h"

#include <gtest/gtest.h>

#include <sstream>
#include <thread>
#include <vector>

#include "core/json.h"
#include "core/secrets.h"

namespace muster {
namespace {

class LogTest : public testing::Test {
 protected:
  ~LogTest() override { SetLogging(Level::kWarning, LogFormat::kText); }

  template <class Action>
  std::string Capture(Action action) {
    testing::internal::CaptureStderr();
    action();
    return testing::internal::GetCapturedStderr();
  }
};

TEST_F(LogTest, TextNamesTimeLevelMessageAndFields) {
  SetLogging(Level::kInfo, LogFormat::kText);
  std::string key = "a b";
  std::string line = Capture([&] {
    Log(Level::kInfo, "claimed", {{"item", key}, {"queue", "q"}, {"epoch", 7}, {"ok", true}});
  });
  EXPECT_EQ(line.substr(24), " info claimed item=\"a b\" queue=q epoch=7 ok=true\n") << line;
  EXPECT_EQ(line[10], 'T');
  EXPECT_EQ(line[23], 'Z');
}

TEST_F(LogTest, JsonKeepsTypes) {
  SetLogging(Level::kDebug, LogFormat::kJson);
  std::string line = Capture([] {
    Log(Level::kError, "100% \"bad\" {}\xff",
        {{"n", int64_t{-5}}, {"d", 0.5}, {"b", false}, {"s", std::string("x\ny")}});
  });
  auto json = Json::parse(line);
  EXPECT_EQ(json["level"], "error");
  EXPECT_EQ(json["message"], "100% \"bad\" {}\xEF\xBF\xBD");
  EXPECT_EQ(json["n"], -5);
  EXPECT_EQ(json["d"], 0.5);
  EXPECT_EQ(json["b"], false);
  EXPECT_EQ(json["s"], "x\ny");
  EXPECT_EQ(json["time"].get<std::string>().size(), 24U);
}

TEST_F(LogTest, LevelsBelowTheSetOneAreSilent) {
  SetLogging(Level::kWarning, LogFormat::kText);
  EXPECT_EQ(Capture([] { Log(Level::kInfo, "quiet"); }), "");
  EXPECT_NE(Capture([] { Log(Level::kWarning, "loud"); }), "");
  SetLogging(Level::kOff, LogFormat::kText);
  EXPECT_EQ(Capture([] { Log(Level::kError, "quiet"); }), "");
}

TEST_F(LogTest, SecretsAreRedactedInMessageAndFields) {
  RememberSecret("s3cr\"et-log");
  for (LogFormat format : {LogFormat::kText, LogFormat::kJson}) {
    SetLogging(Level::kInfo, format);
    std::string line = Capture([] {
      Log(Level::kInfo, "pw s3cr\"et-log", {{"url", "x:s3cr\"et-log@h"}});
    });
    EXPECT_EQ(line.find("et-log"), std::string::npos) << line;
    EXPECT_NE(line.find("x:***@h"), std::string::npos) << line;
  }
}

TEST_F(LogTest, LineBreakCannotForgeAnEvent) {
  SetLogging(Level::kInfo, LogFormat::kText);
  std::string text = Capture([] { Log(Level::kInfo, "a\nb", {{"k", "c\nd"}}); });
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1) << text;
}

TEST_F(LogTest, LinesOfThreadsNeverInterleave) {
  SetLogging(Level::kInfo, LogFormat::kJson);
  std::string text = Capture([] {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([t] {
        for (int i = 0; i < 200; ++i) Log(Level::kInfo, "tick", {{"thread", t}, {"i", i}});
      });
    }
  });
  std::istringstream lines(text);
  int count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    EXPECT_TRUE(Json::accept(line)) << line;
  }
  EXPECT_EQ(count, 800);
}

TEST_F(LogTest, LevelsHaveNames) {
  EXPECT_EQ(ParseLevel("debug").value(), Level::kDebug);
  EXPECT_EQ(ParseLevel("warning").value(), Level::kWarning);
  EXPECT_EQ(ParseLevel("off").value(), Level::kOff);
  EXPECT_EQ(ParseLevel("loud").error().code, Code::kInvalid);
}

}  // namespace
}  // namespace muster
