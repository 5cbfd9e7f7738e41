#include "core/json_fields.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

struct All {
  std::string text = "default";
  bool flag = true;
  int number = 7;
  std::optional<double> fraction;
  std::vector<std::string> list;
  std::map<std::string, std::string> map;
  Json any;
};

Result<All> ReadAll(std::string_view text) {
  All all;
  JsonFields fields(Json::parse(text, nullptr, false));
  fields.Read("text", all.text)
      .Read("flag", all.flag)
      .Read("number", all.number)
      .Read("fraction", all.fraction)
      .Read("list", all.list)
      .Read("map", all.map)
      .Read("any", all.any);
  MUSTER_TRY(fields.Check("the record 'x'"));
  return all;
}

TEST(JsonFields, NullReadsAsAnEmptyOptional) {
  std::optional<std::string> text = "before";
  JsonFields fields(Json::parse(R"({"text": null})"));
  const auto read = fields.Read("text", text).Check("it");
  ASSERT_TRUE(read) << read.error().ToString();
  EXPECT_FALSE(text);
}

TEST(JsonFields, ReadsExistingMembersAndKeepsOtherValues) {
  const auto all =
      ReadAll(R"({"text":"t","fraction":1,"list":["a","b"],"map":{"k":"v"},"any":[1],"newer":{}})");
  ASSERT_TRUE(all) << all.error().message;
  EXPECT_EQ(all->text, "t");
  EXPECT_TRUE(all->flag);
  EXPECT_EQ(all->number, 7);
  EXPECT_EQ(all->fraction, 1.0);
  EXPECT_EQ(all->list, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(all->map.at("k"), "v");
  EXPECT_EQ(all->any, Json::array({1}));
  EXPECT_TRUE(ReadAll("{}"));
}

TEST(JsonFields, FirstMistakeIsReported) {
  for (const auto& [text, mistake] : {
           std::pair("", "it is not JSON"),
           std::pair("[]", "it is not an object"),
           std::pair(R"({"number":[],"text":1})", "'text' is not a string"),
           std::pair(R"({"number":[]})", "'number' is not an integer in range"),
           std::pair(R"({"number":1.5})", "'number' is not an integer in range"),
           std::pair(R"({"number":4294967297})", "'number' is not an integer in range"),
           std::pair(R"({"number":18446744073709551615})", "'number' is not an integer in range"),
           std::pair(R"({"flag":0})", "'flag' is not true or false"),
           std::pair(R"({"fraction":"x"})", "'fraction' is not a number"),
           std::pair(R"({"list":{}})", "'list' is not a list"),
           std::pair(R"({"list":["a",1]})", "'list' is not a string"),
           std::pair(R"({"map":[]})", "'map' is not an object"),
           std::pair(R"({"map":{"k":null}})", "'map' is not a string"),
       }) {
    const auto all = ReadAll(text);
    ASSERT_FALSE(all) << text;
    EXPECT_EQ(all.error().code, Code::kCorrupt);
    EXPECT_EQ(all.error().message,
              "the record 'x' is damaged or not Muster's: " + std::string(mistake));
  }
}

TEST(JsonFields, RequiredMemberMustExist) {
  int number = 0;
  JsonFields fields(Json::object());
  fields.Need("number", number);
  EXPECT_EQ(fields.Check("it").error().message,
            "it is damaged or not Muster's: 'number' is missing");
}

TEST(JsonFields, DisplayHelpersNeverThrow) {
  for (const char* text : {"null", "[]", "\"x\"", "5", R"({"a":[]})", R"({"a":null})", "{}"}) {
    const Json json = Json::parse(text);
    EXPECT_EQ(TextIn(json, "a"), "") << text;
    EXPECT_EQ(NumberIn(json, "a", -1), -1) << text;
  }
  EXPECT_EQ(TextIn({{"a", "b"}}, "a"), "b");
  EXPECT_EQ(NumberIn({{"a", 5}}, "a"), 5);
  EXPECT_EQ(NumberIn(Json::parse(R"({"a":18446744073709551615})"), "a"), 0);
}

}  // namespace
}  // namespace muster
