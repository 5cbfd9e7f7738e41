#include "core/url.h"

#include <gtest/gtest.h>

#include <filesystem>

#include <random>

#include "support/temporary_folder.h"

namespace muster {
namespace {

using Query = std::vector<std::pair<std::string, std::string>>;

Url Parse(std::string_view text) {
  auto url = ParseUrl(text);
  EXPECT_TRUE(url) << (url ? "" : url.error().ToString());
  return url.value_or(Url{});
}

TEST(Url, SplitsEveryPart) {
  Url url = Parse("PostgreSQL://ann:s%40fe@db.example:5433/app?namespace=a%26b&sslmode=require#x");
  EXPECT_EQ(url.scheme, "postgresql");
  EXPECT_EQ(url.user, "ann");
  EXPECT_EQ(url.password, "s@fe");
  EXPECT_EQ(url.host, "db.example");
  EXPECT_EQ(url.port, 5433);
  EXPECT_EQ(url.path, "/app");
  EXPECT_EQ(url.query, (Query{{"namespace", "a&b"}, {"sslmode", "require"}}));
  EXPECT_EQ(url.fragment, "x");
  EXPECT_EQ(url.Param("sslmode"), "require");
  EXPECT_EQ(url.Param("other"), std::nullopt);
}

TEST(Url, AcceptsAPathWithoutAuthority) {
  EXPECT_EQ(Parse("memory:").path, "");
  EXPECT_EQ(Parse("sqlite:muster.db").path, "muster.db");
  EXPECT_EQ(Parse("sqlite:dir/a%20b.db?namespace=x").path, "dir/a b.db");
  EXPECT_EQ(Parse("sqlite:/var/lib/m.db").path, "/var/lib/m.db");
  EXPECT_EQ(Parse("sqlite:///var/lib/m.db").path, "/var/lib/m.db");
}

TEST(Url, AcceptsAnIpv6HostAndAnEncodedSocketFolder) {
  EXPECT_EQ(Parse("postgresql://[::1]:5432/db").host, "::1");
  EXPECT_EQ(Parse("postgresql://[::1]:5432/db").port, 5432);
  EXPECT_EQ(Parse("postgresql://%2Ftmp/db").host, "/tmp");
}

TEST(Url, EmptyPortAndQueryAreAbsent) {
  Url url = Parse("postgresql://host:/db?&a&b=");
  EXPECT_EQ(url.port, std::nullopt);
  EXPECT_EQ(url.query, (Query{{"a", ""}, {"b", ""}}));
}

TEST(Url, KeepsSecretReferencesWhole) {
  Url url = Parse("postgresql://${env:U@1}:${file:/run/pw?%41}@host/db?a=${env:X&Y}");
  EXPECT_EQ(url.user, "${env:U@1}");
  EXPECT_EQ(url.password, "${file:/run/pw?%41}");
  EXPECT_EQ(url.host, "host");
  EXPECT_EQ(url.query, (Query{{"a", "${env:X&Y}"}}));
}

TEST(Url, EveryErrorIsInvalidAndRepeatsNothing) {
  for (std::string_view text :
       {"hunter2", "", ":hunter2", "1a:hunter2", "x://u:hunter2", "x://u:hunter2@h:0/",
        "x://u:hunter2@h:65536/", "x://u:hunter2@h:12a", "x://u:hunter2%4@h", "x://u:hunter2%zz@h",
        "x://u:hunter2%00@h", "x://u:hunter2@[::1", "x://u:hunter2@[::1]5", "x:hunter2 b",
        "x:hunter2\n", "x:?hunter2=%", "x:#hunter2%"}) {
    auto url = ParseUrl(text);
    ASSERT_FALSE(url) << text;
    EXPECT_EQ(url.error().code, Code::kInvalid) << text;
    EXPECT_FALSE(url.error().hint.empty()) << text;
    EXPECT_EQ(url.error().ToString().find("hunter2"), std::string::npos) << url.error().ToString();
  }
  EXPECT_FALSE(ParseUrl("x:" + std::string(8192, 'a')));
}

TEST(Url, EncodedPartsDecodeToTheOriginal) {
  uint64_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  for (int round = 0; round < 2000; ++round) {
    std::string part(1 + random() % 12, ' ');
    for (char& c : part) c = static_cast<char>(1 + random() % 255);
    std::string encoded = PercentEncode(part);
    Url url = Parse("x://" + encoded + ":" + encoded + "@" + encoded + "/" + encoded + "?" +
                    encoded + "=" + encoded + "#" + encoded);
    EXPECT_EQ(url.user, part);
    EXPECT_EQ(url.password, part);
    EXPECT_EQ(url.host, part);
    EXPECT_EQ(url.path, "/" + part);
    EXPECT_EQ(url.query, (Query{{part, part}}));
    EXPECT_EQ(url.fragment, part);
  }
}

TEST(Url, RandomTextIsParsedOrInvalid) {
  uint64_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  constexpr std::string_view kAlphabet = "ab1:/?#[]@%${}&=.-\x01\xff";
  for (int round = 0; round < 50'000; ++round) {
    std::string text = random() % 2 == 0 ? "x:" : "";
    for (uint64_t n = random() % 24; n > 0; --n) text += kAlphabet[random() % kAlphabet.size()];
    auto url = ParseUrl(text);
    EXPECT_TRUE(url || url.error().code == Code::kInvalid) << text;
  }
}

TEST(Url, AParameterCanBeLeftOut) {
  const auto without = [](const char* url) { return WithoutParam(url, "a"); };
  EXPECT_EQ(without("x:y?a=1"), "x:y");
  EXPECT_EQ(without("x:y?a=1&b=2#t"), "x:y?b=2#t");
  EXPECT_EQ(without("x:y?b=2&a&c=${env:Q}#t"), "x:y?b=2&c=${env:Q}#t");
  EXPECT_EQ(without("x://u:p@h/d?%61=1&a=2#t"), "x://u:p@h/d#t");
  for (const char* same : {"x:y", "x:y#?a=1", "x:${env:A?a=1}?b=a", "plain?aa=1&b=a=1", ""}) {
    EXPECT_EQ(without(same), same);
  }
}

TEST(Url, RelativePathsBecomeAbsolute) {
  const testing::TemporaryFolder folder;
  const auto before = std::filesystem::current_path();
  const std::string inner = folder.At("a b%c");
  std::filesystem::create_directory(inner);
  std::filesystem::current_path(inner);
  const std::string here = std::filesystem::path(std::filesystem::current_path()).parent_path();
  const std::string at = here + "/a%20b%25c";
  EXPECT_EQ(AbsoluteUrl("jsonl:data/x.jsonl"), "jsonl:" + at + "/data/x.jsonl");
  EXPECT_EQ(AbsoluteUrl("jsonl:./x?id=id#t"), "jsonl:" + at + "/x?id=id#t");
  EXPECT_EQ(AbsoluteUrl("sqlite:../x.db#a/b"), "sqlite:" + here + "/x.db#a/b");
  EXPECT_EQ(AbsoluteUrl("csv:data/"), "csv:" + at + "/data/");
  EXPECT_EQ(ParseUrl(AbsoluteUrl("jsonl:x%3F"))->path, inner + "/x?");
  for (const char* same : {"jsonl:/data/../x", "postgresql://me@host/db#t", "memory:", "plain", "",
                           "sqlite:${env:FILE}", "snapshot+file:///x", "?a:b", "sqlite:#t"}) {
    EXPECT_EQ(AbsoluteUrl(same), same);
  }
  std::filesystem::current_path(before);
}

}  // namespace
}  // namespace muster
