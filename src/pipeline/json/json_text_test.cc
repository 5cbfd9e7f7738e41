#include "pipeline/json/json_text.h"

#include <gtest/gtest.h>

#include "core/json.h"

namespace muster::pipeline {
namespace {

TEST(CheckJsonObject, AcceptsEveryObject) {
  for (const char* text :
       {"{}", " { } ", R"({"a":1,"b":[],"c":{},"d":[[],{}],"e":null,"f":true,"g":false})",
        R"({"n":[0,-0,1.0,1e3,-1.5E-7,123456789012345678901234567890,1e999]})",
        R"({"s":"\"\\\/\b\f\n\r\t\u00e4\ud83d\ude00ä"})", "{\"a\"\t:\r\n[1 , 2]}"}) {
    const Status status = CheckJsonObject(text);
    EXPECT_TRUE(status) << text << ": " << status.error().message;
  }
}

TEST(CheckJsonObject, RejectsOtherText) {
  for (const char* text : {"",
                           "1",
                           "[]",
                           "\"a\"",
                           "null",
                           "{",
                           "}",
                           "{]",
                           "{}}",
                           "{} {}",
                           "{,}",
                           R"({"a"})",
                           R"({"a":})",
                           R"({"a":1,})",
                           R"({"a" 1})",
                           R"({a:1})",
                           R"({"a":01})",
                           R"({"a":1.})",
                           R"({"a":.5})",
                           R"({"a":1e})",
                           R"({"a":+1})",
                           R"({"a":-})",
                           R"({"a":tru})",
                           R"({"a":[1,]})",
                           R"({"a":[1 2]})",
                           R"({"a":[1})",
                           R"({"a":"\x"})",
                           R"({"a":"\u12g4"})",
                           R"({"a":"b)",
                           "{\"a\":\"\n\"}",
                           "{\"a\":\"\xff\"}",
                           R"({"a":NaN})",
                           R"({"a":1}x)",
                           R"({'a':1})"}) {
    const Status status = CheckJsonObject(text);
    ASSERT_FALSE(status) << text;
    EXPECT_EQ(status.error().code, Code::kInvalid);
  }
}

TEST(CheckJsonObject, ErrorsHaveReasonAndPosition) {
  EXPECT_EQ(CheckJsonObject(R"({"a":1 "b":2})").error().message,
            "invalid JSON: ',' or a closing bracket is missing at byte 8");
  EXPECT_EQ(CheckJsonObject("{\"a\":\"\xff\"}").error().message, "invalid UTF-8 at byte 7");
}

TEST(CheckJsonObject, DepthIsBounded) {
  const auto nested = [](size_t depth) {
    return "{\"a\":" + std::string(depth, '[') + std::string(depth, ']') + "}";
  };
  EXPECT_TRUE(CheckJsonObject(nested(999)));
  EXPECT_FALSE(CheckJsonObject(nested(1000)));
  EXPECT_FALSE(CheckJsonObject(nested(5'000'000)));
}

}  // namespace
}  // namespace muster::pipeline
