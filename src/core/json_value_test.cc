#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <set>

#include "muster/json.h"

namespace muster {
namespace {

TEST(JsonValueTest, BracesMakeObjectsOfPairsAndArraysOfTheRest) {
  const std::string name = "orders";
  const Json json = {{"name", name}, {"rows", 3}, {"parts", {1, "two", nullptr, 2.5, true}}};
  EXPECT_EQ(json.dump(), R"({"name":"orders","rows":3,"parts":[1,"two",null,2.5,true]})");
  EXPECT_EQ(Json({{"a", 1}, {"b"}}).dump(), R"([["a",1],["b"]])");
  EXPECT_EQ(Json::array({{"a", 1}}).dump(), R"([["a",1]])");
  EXPECT_EQ(Json(std::map<std::string, int>{{"x", 1}}).dump(), R"({"x":1})");
  EXPECT_EQ(Json(std::set<int>{2, 1}).dump(), "[1,2]");
  EXPECT_EQ(Json::object().dump(), "{}");
}

TEST(JsonValueTest, ParsedTextIsPrintedUnchanged) {
  for (const char* text :
       {"null", "true", "-1", "18446744073709551615", "-9223372036854775808", "1.0", "1e+300",
        "0.1", R"("\"\\\b\f\n\r\t\u0001é")", R"([1,[2,[]],{}])", R"({"b":1,"a":{"c":[null]}})"}) {
    EXPECT_EQ(Json::parse(text).dump(), text);
  }
  EXPECT_EQ(Json::parse(R"({"a":[1,{"b":2}],"c":{}})").dump(2),
            "{\n  \"a\": [\n    1,\n    {\n      \"b\": 2\n    }\n  ],\n  \"c\": {}\n}");
  EXPECT_EQ(Json("a\xff").dump(), "\"a\xEF\xBF\xBD\"");
  EXPECT_EQ(Json(std::numeric_limits<double>::infinity()).dump(), "null");
}

TEST(JsonValueTest, InvalidJsonThrowsOrIsDiscarded) {
  for (const char* text : {"", "{", "[1,]", "nul", "1 2", "\"\xff\"", "{\"a\" 1}"}) {
    EXPECT_THROW(Json::parse(text), Json::Exception) << text;
    const Json discarded = Json::parse(text, nullptr, false);
    EXPECT_TRUE(discarded.is_discarded());
    EXPECT_FALSE(discarded == discarded);
    EXPECT_FALSE(discarded.contains("a"));
    EXPECT_FALSE(Json::accept(text));
  }
}

TEST(JsonValueTest, LastOfDuplicateKeysWins) {
  EXPECT_EQ(Json::parse(R"({"a":1,"b":2,"a":3})").dump(), R"({"a":3,"b":2})");
  std::string text = "{";
  for (int i = 0; i < 1000; ++i)
    text += "\"k" + std::to_string(i % 500) + "\":" + std::to_string(i) + ",";
  text.back() = '}';
  const Json json = Json::parse(text);
  EXPECT_EQ(json.size(), 500U);
  EXPECT_EQ(json["k499"], 999);
}

TEST(JsonValueTest, DeepValuesNeedNoDeepStack) {
  constexpr size_t kTooDeep = 1'000'000;
  EXPECT_TRUE(Json::parse(std::string(kTooDeep, '['), nullptr, false).is_discarded());
  Json json;
  for (size_t i = 0; i < kTooDeep; ++i) {
    Json outer = Json::array();
    outer.push_back(std::move(json));
    json = std::move(outer);
  }
}

TEST(JsonValueTest, NumbersAreComparedByTheirValue) {
  EXPECT_EQ(Json(1), Json(1U));
  EXPECT_EQ(Json(1), Json(1.0));
  EXPECT_EQ(Json(1), 1);
  EXPECT_NE(Json(-1), Json(std::numeric_limits<uint64_t>::max()));
  EXPECT_LT(Json(-1), Json(std::numeric_limits<uint64_t>::max()));
  EXPECT_GT(Json(2), 1.5);
  EXPECT_NE(Json("1"), Json(1));
  EXPECT_EQ(Json("a"), "a");
  EXPECT_LT(Json("a"), Json("b"));
  EXPECT_NE(Json::parse(R"({"a":1,"b":2})"), Json::parse(R"({"b":2,"a":1})"));
}

TEST(JsonValueTest, IntegersAndFloatsAreComparedExactly) {
  const Json above = Json::parse("9007199254740993");
  EXPECT_GT(above, Json(9007199254740992.0));
  EXPECT_LT(Json(9007199254740992.0), above);
  EXPECT_NE(above, Json(9007199254740992.0));
  EXPECT_EQ(Json::parse("9007199254740992"), Json(9007199254740992.0));
  EXPECT_LT(Json::parse("18446744073709551615"), Json(18446744073709551616.0));
  EXPECT_GT(Json::parse("18446744073709551615"), Json(18446744073709549568.0));
  EXPECT_LT(Json::parse("9223372036854775807"), Json(9223372036854775808.0));
  EXPECT_EQ(Json::parse("-9223372036854775808"), Json(-9223372036854775808.0));
  EXPECT_GT(Json::parse("-9223372036854775808"), Json(-1e300));
  EXPECT_LT(Json::parse("-1"), Json(-0.5));
  EXPECT_GT(Json::parse("18446744073709551615"), Json(-0.5));
}

TEST(JsonValueTest, NumberThatDoesNotFitIsClamped) {
  EXPECT_EQ(Json(1e300).get<int64_t>(), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(Json(-1e300).get<int64_t>(), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(Json(1e300).get<uint64_t>(), std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(Json(int64_t{1} << 40).get<int>(), std::numeric_limits<int>::max());
  EXPECT_EQ(Json(std::numeric_limits<uint64_t>::max()).get<int64_t>(),
            std::numeric_limits<int64_t>::max());
  EXPECT_EQ(Json(-1.5).get<uint64_t>(), 0U);
}

TEST(JsonValueTest, WrongTypesAndMissingMembersThrow) {
  const Json json = {{"rows", 3}, {"name", "x"}};
  EXPECT_THROW(json.at("rows").get<std::string>(), Json::Exception);
  EXPECT_THROW(json.at("name").get<int>(), Json::Exception);
  EXPECT_THROW(json.at("missing"), Json::Exception);
  EXPECT_THROW(json.value("name", 0), Json::Exception);
  EXPECT_THROW(Json(1).value("name", 0), Json::Exception);
  EXPECT_THROW(Json(1)["name"], Json::Exception);
  EXPECT_THROW(Json::array().at(0), Json::Exception);
  EXPECT_EQ(json.value("missing", "otherwise"), "otherwise");
  EXPECT_EQ(json["missing"], nullptr);
}

TEST(JsonValueTest, MembersAndElementsAreAddedFoundAndErased) {
  Json json;
  json["b"] = 1;
  json["a"].push_back(2);
  json["a"].emplace_back("x");
  json["n"][2] = true;
  EXPECT_EQ(json.dump(), R"({"b":1,"a":[2,"x"],"n":[null,null,true]})");
  EXPECT_EQ(json.find("a").key(), "a");
  EXPECT_EQ(json.find("z"), json.end());
  EXPECT_FALSE(json.emplace("b", 5).second);
  EXPECT_EQ(json.erase("b"), 1U);
  EXPECT_EQ(json.erase("b"), 0U);
  json["a"].erase(json["a"].begin());
  json["a"].insert(json["a"].begin(), 0);
  EXPECT_EQ(json["a"].dump(), R"([0,"x"])");
  std::string keys;
  for (const auto& [key, value] : json.items()) keys += key;
  EXPECT_EQ(keys, "an");
  EXPECT_TRUE(Json(1).items().empty());
  EXPECT_EQ(Json(1).begin(), Json(1).end());
  json.merge_patch(Json::parse(R"({"n":null,"a":{"c":1}})"));
  EXPECT_EQ(json.dump(), R"({"a":{"c":1}})");
}

}  // namespace
}  // namespace muster
