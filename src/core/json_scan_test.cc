#include "core/json_scan.h"

#include <gtest/gtest.h>

#include <string>

namespace muster {
namespace {

// The scanner works in blocks: try every value at every offset of a block.
TEST(JsonScan, EndOfAValueIsFoundAtEveryOffset) {
  const std::string values[] = {R"("")",
                                R"("a")",
                                R"("\"")",
                                R"("\\")",
                                R"("a long text that goes on for more than one block, \" and on")",
                                R"({})",
                                R"([])",
                                R"([[[[[[[[[[]]]]]]]]]])",
                                R"({"a":"}","b":"]","c":"\"}"})",
                                R"({"a":["{","\\",{"b":[1,2,{"c":"[[["}]}],"d":{"e":"}}}\\\""}})",
                                R"([{"sku":"A-1","n":1},{"sku":"B-2","n":2},{"sku":"C","n":3}])",
                                "12.5",
                                "null"};
  for (const std::string& value : values) {
    for (size_t before = 0; before < 40; ++before) {
      const std::string text = std::string(before, ' ') + value + ",\"rest\":\"]}\"}";
      EXPECT_EQ(SkipJsonValue(text, before), before + value.size()) << text;
      EXPECT_EQ(SkipJsonValue(text.substr(0, before + value.size()), before), before + value.size())
          << "without a rest: " << text;
    }
  }
}

TEST(JsonScan, TruncatedValueEndsWithTheText) {
  const std::string whole = R"({"a":["{","\\",{"b":[1,2,{"c":"[[["}]}],"d":{"e":"}}}\\\""}})";
  for (size_t size = 1; size < whole.size(); ++size) {
    EXPECT_EQ(SkipJsonValue(whole.substr(0, size), 0), size);
  }
}

TEST(JsonScan, EscapedKeysAreCompared) {
  EXPECT_TRUE(JsonKeyIs("name", "name"));
  EXPECT_TRUE(JsonKeyIs(R"(n\u0061me)", "name"));
  EXPECT_TRUE(JsonKeyIs(R"(a\nb)", "a\nb"));
  EXPECT_FALSE(JsonKeyIs(R"(a\nb)", R"(a\nb)"));
  EXPECT_FALSE(JsonKeyIs("names", "name"));
  EXPECT_FALSE(JsonKeyIs("nam", "name"));
}

}  // namespace
}  // namespace muster
