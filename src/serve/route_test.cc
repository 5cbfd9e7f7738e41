#include "serve/route.h"

#include <gtest/gtest.h>

namespace muster::serve {
namespace {

using Values = std::vector<std::string>;

TEST(RouteTest, ValuesAreDecoded) {
  EXPECT_EQ(MatchPath("/s/{store}/w/{run}", "/s/0/w/a%2Fb__0__%C3%A4"), (Values{"0", "a/b__0__ä"}));
  EXPECT_EQ(MatchPath("/healthz", "/healthz"), Values{});
}

TEST(RouteTest, OnlyTheExactPathMatches) {
  for (const char* path :
       {"/s/0", "/s/0/", "/s/0/w", "/s/0/w/", "/s/0/w/a/", "/s/0/w/a/b", "//s/0/w/a", "/S/0/w/a",
        "s/0/w/a", "/s//w/a", "/s/0/w/..", "/s/0/w/.", "/s/0/w/%2e%2e", "/s/0/w/%00", "/s/0/w/%0a",
        "/s/0/w/%zz", "/s/0/w/%2", "/s/%30/w/../w/a", ""}) {
    EXPECT_FALSE(MatchPath("/s/{store}/w/{run}", path)) << path;
  }
}

TEST(RouteTest, LiteralSegmentsAreNotDecoded) {
  EXPECT_FALSE(MatchPath("/api/v1/overview", "/api/v1/%6fverview"));
}

}  // namespace
}  // namespace muster::serve
