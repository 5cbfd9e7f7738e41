#include "core/regex.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

bool Matches(const std::string& pattern, std::string_view text) {
  const auto parsed = Pattern::Parse(pattern);
  EXPECT_TRUE(parsed) << pattern;
  return parsed && parsed->Matches(text);
}

TEST(Pattern, GlobMatchesTheWholeText) {
  EXPECT_TRUE(Matches("orders", "orders"));
  EXPECT_FALSE(Matches("orders", "orders2"));
  EXPECT_TRUE(Matches("logs-*", "logs-2024.01"));
  EXPECT_FALSE(Matches("logs-*", "my-logs-2024"));
  EXPECT_TRUE(Matches("a?c", "abc"));
  EXPECT_FALSE(Matches("a.c", "abc"));
  EXPECT_TRUE(Matches("a(1)[2]{3}+^$|\\", "a(1)[2]{3}+^$|\\"));
  EXPECT_TRUE(Matches("*", ""));
}

TEST(Pattern, SlashesEncloseARegularExpression) {
  EXPECT_TRUE(Matches("/^logs-[0-9]+$/", "logs-2024"));
  EXPECT_FALSE(Matches("/^logs-[0-9]+$/", "logs-x"));
  EXPECT_TRUE(Matches("/2024/", "logs-2024-x"));
  const auto broken = Pattern::Parse("/a(/");
  ASSERT_FALSE(broken);
  EXPECT_EQ(broken.error().code, Code::kInvalid);
}

TEST(Regex, GivesItsGroups) {
  const auto regex = Regex::Compile("^(a+)-(b+)?$");
  const auto groups = regex->Groups("aa-");
  ASSERT_TRUE(groups);
  EXPECT_EQ(*groups, (std::vector<std::string_view>{"aa-", "aa", ""}));
  EXPECT_FALSE(regex->Groups("x"));
}

TEST(Regex, LongestOfTheFirstMatchesWins) {
  EXPECT_EQ(Regex::Compile("a|ab|abc")->Groups("xabcabc")->at(0), "abc");
}

TEST(Regex, GivesTenGroupsAtMost) {
  const auto groups = Regex::Compile("(a)(b)(c)(d)(e)(f)(g)(h)(i)(j)(k)")->Groups("abcdefghijk");
  ASSERT_TRUE(groups);
  ASSERT_EQ(groups->size(), Regex::kMaxGroups);
  EXPECT_EQ(groups->back(), "i");
}

TEST(Regex, MatchesAPartOrTheWhole) {
  const auto regex = Regex::Compile("a|ab");
  EXPECT_TRUE(regex->Matches("xabx"));
  EXPECT_FALSE(regex->MatchesWhole("xabx"));
  EXPECT_TRUE(regex->MatchesWhole("ab"));
  EXPECT_TRUE(Regex::Compile("A.B", {.ignore_case = true})->MatchesWhole("aéb"));
  EXPECT_TRUE(Regex::Compile("a.b")->Matches("a\nb"));
  EXPECT_FALSE(Regex::Compile("a.b", {.dot_takes_newline = false})->Matches("a\nb"));
}

TEST(Regex, AnEscapedTextMatchesItselfOnly) {
  for (const std::string text : {"a.b*c", "[x]{2}^$|\\(?)+", "é/-\n", ""}) {
    EXPECT_TRUE(Regex::Compile(Regex::Escape(text))->MatchesWhole(text)) << text;
    EXPECT_FALSE(Regex::Compile(Regex::Escape(text))->MatchesWhole(text + "x")) << text;
  }
}

TEST(Regex, LongTextsAreSafe) {
  EXPECT_TRUE(Regex::Compile("^(a|b)*c$")->Matches(std::string(1'000'000, 'a') + "c"));
  EXPECT_FALSE(Regex::Compile(".*x")->MatchesWhole(std::string(1'000'000, 'a')));
}

// Each of these takes a backtracking engine practically forever, or overflows its stack; the test's
// timeout decides.
TEST(Regex, ExpressionsThatExplodeElsewhereAreQuick) {
  const std::string text(50'000, 'a');
  for (const char* expression :
       {"(a+)+b", "(a|a)*b", "(a*)*b", "(a|aa)+b", "(.*)(.*)(.*)(.*)(.*)b", "(a?){200}a{200}b",
        "((a{0,30}){0,30}){0,30}b", "(a{1,200}){1,20}b"}) {
    const auto regex = Regex::Compile(expression);
    if (!regex) continue;  // too large is a valid result too
    EXPECT_FALSE(regex->Matches(text)) << expression;
    EXPECT_FALSE(regex->MatchesWhole(text)) << expression;
    EXPECT_FALSE(regex->Groups(text)) << expression;
  }
}

TEST(Regex, ManyParenthesesCompileOrAreRejected) {
  constexpr size_t kMany = 60'000;
  const std::string open(kMany, '('), close(kMany, ')');
  const auto unclosed = Regex::Compile(open);
  ASSERT_FALSE(unclosed);
  EXPECT_EQ(unclosed.error().code, Code::kInvalid);
  EXPECT_LT(unclosed.error().message.size(), 1000u);
  if (const auto nested = Regex::Compile(open + "a" + close)) {
    EXPECT_TRUE(nested->Groups("a"));
    EXPECT_FALSE(nested->Groups(std::string(50'000, 'b')));
  }
  std::string beside;
  for (size_t i = 0; i < kMany; ++i) beside += "(a)?";
  if (const auto many = Regex::Compile(beside)) {
    EXPECT_TRUE(many->Groups(std::string(1'000, 'a')));
  }
}

TEST(Regex, ExpressionThatNeedsTooMuchMemoryIsRejected) {
  const auto regex = Regex::Compile("((a{100}){100}){100}");
  ASSERT_FALSE(regex);
  EXPECT_NE(regex.error().message.find("is not a regular expression"), std::string::npos);
}

TEST(Regex, UnsupportedSyntaxIsRejected) {
  for (const char* expression : {"(a)\\1", "a(?=b)", "(?<!a)b", "a(", "[a", "*"}) {
    EXPECT_FALSE(Regex::Compile(expression)) << expression;
  }
}

TEST(Pattern, StarMatchesAnyBytes) {
  EXPECT_TRUE(Matches("logs-*", "logs-\xFF\n"));
  EXPECT_TRUE(Matches("a?c", "aéc"));
}

}  // namespace
}  // namespace muster
