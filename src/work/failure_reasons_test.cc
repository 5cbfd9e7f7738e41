#include "work/failure_reasons.h"

#include <gtest/gtest.h>

#include "muster/store.h"

namespace muster::work {
namespace {

TEST(FailureReasonsTest, MessagesThatDifferInNumbersAndQuotesAreOneReason) {
  FailureReasons reasons;
  reasons.Add("7", "failed to parse field [price] of '7': 12x");
  reasons.Add("8", "failed to parse field [price] of 'eight': 13");
  reasons.Add("9", "no such table");
  const std::vector<FailureReason> list = reasons.List();
  ASSERT_EQ(list.size(), 2u);
  EXPECT_EQ(list[0].reason, "failed to parse field [price] of '…': #");
  EXPECT_EQ(list[0].count, 2);
  EXPECT_EQ(list[0].id, "7");
  EXPECT_EQ(list[0].message, "failed to parse field [price] of '7': 12x");
  EXPECT_EQ(list[1].count, 1);
  EXPECT_EQ(reasons.total(), 3);
}

// Words without digits cannot be recognised as variable.
std::string Unlike(int number) {
  std::string word(300, 'x');
  for (char& c : word) {
    c = static_cast<char>('a' + number % 26);
    number /= 26;
  }
  return word;
}

TEST(FailureReasonsTest, ControlCharactersOfDocumentsAreRemoved) {
  FailureReasons reasons;
  reasons.Add("a\x1b[2J\n", "no\t\x1b]0;title\x07\nat line 2");
  const FailureReason reason = reasons.List().front();
  for (const std::string& text : {reason.reason, reason.id, reason.message}) {
    EXPECT_EQ(text.find_first_of("\x1b\x07\t\n"), std::string::npos) << text;
  }
}

TEST(FailureReasonsTest, ManyReasonsTakeBoundedSpace) {
  FailureReasons reasons;
  for (int i = 0; i < 1000; ++i) {
    reasons.Add(std::string(10'000, '\xff'), Unlike(i) + std::string(100'000, 'y'));
  }
  const std::vector<FailureReason> list = reasons.List();
  ASSERT_EQ(list.size(), FailureReasons::kMaxListed + 1);
  EXPECT_EQ(list.back().reason, "other");
  EXPECT_EQ(list.back().count, 1000 - 20);
  EXPECT_EQ(reasons.total(), 1000);
  EXPECT_LT(ToJsonText(reasons.ToJson()).size(), store::kMaxBodyBytes / 10);
}

TEST(FailureReasonsTest, AreStoredAndReadAgain) {
  FailureReasons reasons;
  for (int i = 0; i < 30; ++i) reasons.Add("id", Unlike(i));
  reasons.Add("a", "twice");
  JsonFields fields(Json::object());
  const FailureReasons again =
      FailureReasons::Read(Json::parse(ToJsonText(reasons.ToJson())), fields);
  EXPECT_TRUE(fields.good());
  EXPECT_EQ(again.total(), reasons.total());
  EXPECT_EQ(ToJsonText(again.ToJson()), ToJsonText(reasons.ToJson()));
  for (const char* damaged :
       {"{}", "[1]", R"([{"reason":1,"count":1}])", R"([{"reason":"r","count":-1}])"}) {
    JsonFields bad(Json::object());
    FailureReasons::Read(Json::parse(damaged), bad);
    EXPECT_FALSE(bad.good()) << damaged;
  }
}

TEST(FailureReasonsTest, TheMostFrequentOfManyAreListed) {
  FailureReasons reasons(1'000);
  for (int i = 0; i < 100; ++i) reasons.Add({.reason = Unlike(i), .count = i + 1});
  EXPECT_EQ(reasons.List().front().count, 100);
  EXPECT_EQ(reasons.List()[19].count, 81);
  EXPECT_EQ(reasons.List().back().count, 80 * 81 / 2);
}

TEST(FailureLimitTest, IsANumberOrAPercentage) {
  for (const char* text : {"0", "20", "50%", "2.5%", "0%", "100%"}) {
    EXPECT_EQ(FailureLimit::Parse(text)->ToString(), text);
  }
  EXPECT_EQ(FailureLimit().ToString(), "50%");
  for (const char* text :
       {"", "%", "-1", "101%", "-1%", "x", "1 %", "nan%", "1e3", "5%%", "99999999999999999999"}) {
    const auto parsed = FailureLimit::Parse(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().code, Code::kInvalid);
  }
}

TEST(FailureLimitTest, AShareCountsFromAThousandDocumentsOn) {
  const FailureLimit half;
  EXPECT_FALSE(half.IsExceeded({.read = 500, .failed = 500}));
  EXPECT_TRUE(half.IsExceeded({.read = 501, .failed = 501}));
  EXPECT_FALSE(half.IsExceeded({.read = 2'000, .failed = 1'000}));
  EXPECT_TRUE(half.IsExceeded({.read = 2'000, .failed = 1'001}));
  const FailureLimit none{.documents = 0};
  EXPECT_FALSE(none.IsExceeded({.read = 10}));
  EXPECT_TRUE(none.IsExceeded({.read = 10, .failed = 1}));
  EXPECT_FALSE((FailureLimit{.percent = 100}.IsExceeded({.read = 5'000, .failed = 5'000})));
}

}  // namespace
}  // namespace muster::work
