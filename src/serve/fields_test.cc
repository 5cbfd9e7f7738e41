#include "serve/fields.h"

#include <gtest/gtest.h>

namespace muster::serve {
namespace {

const std::vector<Field> kFields{
    {.name = "preview", .type = Field::Type::kFlag},
    {.name = "workers", .type = Field::Type::kNumber, .least = 1, .most = 10, .fallback = 3},
    {.name = "stream"},
    {.name = "topic", .type = Field::Type::kTexts}};

TEST(FieldsTest, ABodyHasOnlyKnownFieldsOfTheRightTypes) {
  EXPECT_EQ(ReadBody("", kFields).value(), Json::object());
  EXPECT_TRUE(ReadBody(R"({"preview":true,"workers":10,"stream":"s"})", kFields));
  for (const char* body :
       {"[]", "{", "1", R"({"other":1})", R"({"preview":1})", R"({"workers":"1"})",
        R"({"workers":0})", R"({"workers":11})", R"({"workers":18446744073709551615})",
        R"({"workers":1.0})", R"({"stream":null})", R"({"topic":["a"]})"}) {
    const auto read = ReadBody(body, kFields);
    ASSERT_FALSE(read) << body;
    EXPECT_EQ(read.error().code, Code::kInvalid) << body;
  }
}

TEST(FieldsTest, AQueryHasFallbacksAndIgnoresOtherParameters) {
  const auto read = [](std::vector<std::pair<std::string, std::string>> query) {
    return ReadQuery({.method = "GET", .path = "/", .query = std::move(query), .headers = {}},
                     kFields);
  };
  EXPECT_EQ(read({}).value(), (Json{{"workers", 3}, {"topic", Json::array()}}));
  EXPECT_EQ(read({{"topic", "a"}, {"other", "1"}, {"topic", "b"}, {"workers", "7"}}).value(),
            (Json{{"workers", 7}, {"topic", {"a", "b"}}}));
  for (const char* number : {"0", "11", "-1", "x", "1x", "", " 1", "18446744073709551617"}) {
    EXPECT_FALSE(read({{"workers", number}})) << number;
  }
}

}  // namespace
}  // namespace muster::serve
