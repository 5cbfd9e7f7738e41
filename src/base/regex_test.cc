#include "base/regex.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

bool Matches(const std::string& pattern, std::string_view text) {
  const auto parsed = Pattern::Parse(pattern);
  EXPECT_TRUE(parsed) << pattern;
  return parsed && parsed->Matches(text);
}

TEST(Pattern, AGlobStandsForTheWholeText) {
  EXPECT_TRUE(Matches("orders", "orders"));
  EXPECT_FALSE(Matches("orders", "orders2"));
  EXPECT_TRUE(Matches("logs-*", "logs-2024.01"));
  EXPECT_FALSE(Matches("logs-*", "my-logs-2024"));
  EXPECT_TRUE(Matches("a?c", "abc"));
  EXPECT_FALSE(Matches("a.c", "abc"));
  EXPECT_TRUE(Matches("a(1)[2]{3}+^$|\\", "a(1)[2]{3}+^$|\\"));
  EXPECT_TRUE(Matches("*", ""));
}

TEST(Pattern, BetweenSlashesStandsARegularExpression) {
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

TEST(Regex, LongTextsAreNoDanger) {
  EXPECT_TRUE(Regex::Compile("^(a|b)*c$")->Matches(std::string(1'000'000, 'a') + "c"));
}

}  // namespace
}  // namespace muster
