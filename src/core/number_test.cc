#include "core/number.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace muster {
namespace {

TEST(Number, ParsesOnlyTheWholeText) {
  EXPECT_EQ(ParseNumber<int64_t>("-42"), -42);
  EXPECT_EQ(ParseNumber<double>("1.5e3"), 1500);
  for (const char* text : {"", " 1", "1 ", "+1", "0x10", "one", "1,5", "1.5", "--1", "-"}) {
    EXPECT_EQ(ParseNumber<int64_t>(text), std::nullopt) << text;
  }
  for (const char* text : {"", " 1", "1e", "1.5x", "one", "1,5"}) {
    EXPECT_EQ(ParseNumber<double>(text), std::nullopt) << text;
  }
}

TEST(Number, MustFitItsType) {
  EXPECT_EQ(ParseNumber<int64_t>("9223372036854775807"), INT64_MAX);
  EXPECT_EQ(ParseNumber<int64_t>("9223372036854775808"), std::nullopt);
  EXPECT_EQ(ParseNumber<int>("4294967297"), std::nullopt);
  EXPECT_EQ(ParseNumber<size_t>("-1"), std::nullopt);
  for (const char* text : {"1e400", "-1e400", "inf", "nan", "-infinity"}) {
    EXPECT_EQ(ParseNumber<double>(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace muster
