#include "core/json.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <random>

#include "support/temporary_folder.h"

namespace muster {
namespace {

std::string ErrorOf(std::string_view text, const JsonLimits& limits = {}) {
  auto json = ParseJson(text, "f.json", limits);
  if (json) return "accepted: " + json->dump();
  EXPECT_EQ(json.error().code, Code::kInvalid);
  return json.error().message;
}

TEST(Json, KeepsTheOrderOfKeys) {
  auto json = ParseJson(R"( {"z":[1,-2,2.5,true,null,"é\n"],"a":{"b":{}}} )", "f.json");
  ASSERT_TRUE(json) << json.error().message;
  EXPECT_EQ(json->dump(), R"({"z":[1,-2,2.5,true,null,"é\n"],"a":{"b":{}}})");
}

TEST(Json, ErrorsSayWhereAndWhy) {
  EXPECT_EQ(ErrorOf("{\n  \"ä\": tru\n}").substr(0, 14), "f.json:2:11: s")
      << ErrorOf("{\"ä\":tru}");
  EXPECT_EQ(ErrorOf("").substr(0, 12), "f.json:1:1: ");
  EXPECT_EQ(ErrorOf("[1,\n").substr(0, 12), "f.json:2:1: ");
  EXPECT_EQ(ErrorOf("{} x").substr(0, 12), "f.json:1:4: ");
  EXPECT_EQ(ErrorOf("[\"a\xff\"]").substr(0, 12), "f.json:1:4: ");
  EXPECT_EQ(ErrorOf("[1e999]").substr(0, 9), "f.json:1:");
}

TEST(Json, RejectsDuplicateKeysAtTheSecond) {
  EXPECT_EQ(ErrorOf("{\"a\\\"b\":1,\n \"a\\\"b\":2}"),
            "f.json:2:2: the key \"a\"b\" occurs twice in this object");
  EXPECT_EQ(ErrorOf(R"({"x\\":1,"x\\":2})"),
            "f.json:1:10: the key \"x\\\" occurs twice in this object");
  EXPECT_TRUE(ParseJson(R"({"a":{"a":1},"b":{"a":1}})", "f.json"));
}

TEST(Json, RejectsIntegersThatATreeWouldRound) {
  EXPECT_TRUE(ParseJson("[18446744073709551615,-9223372036854775808,1e30]", "f.json"));
  EXPECT_EQ(ErrorOf("[1,18446744073709551616]"),
            "f.json:1:4: the integer does not fit into 64 bits");
}

TEST(Json, BoundsDepthAndBytes) {
  EXPECT_TRUE(ParseJson("[[[]]]", "f.json", {.depth = 3}));
  EXPECT_EQ(ErrorOf("[[{\"a\":[]}]]", {.depth = 3}), "f.json:1:8: nested deeper than 3 levels");
  EXPECT_EQ(ErrorOf(std::string(1'000'000, '[')), "f.json:1:101: nested deeper than 100 levels");
  EXPECT_EQ(ErrorOf("[1,2]", {.bytes = 4}), "f.json: larger than the limit of 4 bytes");
}

TEST(Json, ManyKeysTakeLinearTime) {
  std::string text = "{";
  for (int i = 0; i < 200'000; ++i) text += "\"k" + std::to_string(i) + "\":0,";
  text.back() = '}';
  auto json = ParseJson(text, "f.json");
  ASSERT_TRUE(json);
  EXPECT_EQ(json->size(), 200'000U);
}

TEST(Json, ReadsFiles) {
  const testing::TemporaryFolder folder;
  const std::string path = folder.Write("file", "{\"a\":}");
  auto json = ReadJsonFile(path);
  ASSERT_FALSE(json);
  EXPECT_EQ(json.error().message.find(path + ":1:6: "), 0U) << json.error().message;
  std::filesystem::remove(path);
  EXPECT_FALSE(ReadJsonFile(path));
}

TEST(Json, WritesBadUtf8AsReplacementCharacters) {
  EXPECT_EQ(ToJsonText(Json{{"a", "x\xff"}}), "{\"a\":\"x\xEF\xBF\xBD\"}");
}

TEST(Json, RandomTextIsParsedLikeTheLibraryOrRejected) {
  uint64_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  constexpr std::string_view kAlphabet = "[[{{]]}}::,,\"\"\"ab10.e-\\u \n\xc3\xa9\xff";
  for (int round = 0; round < 100'000; ++round) {
    std::string text;
    for (uint64_t n = random() % 16; n > 0; --n) text += kAlphabet[random() % kAlphabet.size()];
    auto json = ParseJson(text, "f.json");
    Json expected = Json::parse(text, nullptr, false);
    if (json) {
      EXPECT_EQ(*json, expected) << text;
    } else {
      EXPECT_EQ(json.error().message.find("f.json:"), 0U) << json.error().message;
      bool stricter = json.error().message.find("twice") != std::string::npos ||
                      json.error().message.find("64 bits") != std::string::npos;
      EXPECT_TRUE(expected.is_discarded() || stricter) << text;
    }
  }
}

// Objects destroyed after the thread-locals can still parse.
TEST(Json, CanBeParsedWhileTheProcessExits) {
  struct Late {
    ~Late() { _exit(Json::parse(R"({"a":[1]})")["a"][0] == 1 ? 7 : 1); }
  };
  EXPECT_EXIT(
      {
        static Late late;
        Json::parse(R"({"a":[1]})");
        std::exit(0);
      },
      ::testing::ExitedWithCode(7), "");
}

// Ordinary text takes the fast parser: the result must be the same.
TEST(Json, OrdinaryTextIsParsedLikeTheLibrary) {
  constexpr std::string_view kTokens[] = {"{",
                                          "}",
                                          "[",
                                          "]",
                                          ":",
                                          ",",
                                          " ",
                                          "\n",
                                          "0",
                                          "-0",
                                          "-0.0",
                                          "1",
                                          "-7",
                                          "12",
                                          "1.5",
                                          "1e3",
                                          "1E-7",
                                          "0.1",
                                          "1e400",
                                          "-1e-400",
                                          "9223372036854775807",
                                          "9223372036854775808",
                                          "18446744073709551615",
                                          "18446744073709551616",
                                          "-9223372036854775808",
                                          "-9223372036854775809",
                                          "01",
                                          "null",
                                          "true",
                                          "false",
                                          "\"\"",
                                          "\"a\"",
                                          "\"b\"",
                                          "\"\\u0000\"",
                                          "\"\\ud83d\\ude00\"",
                                          "\"\\ud800\"",
                                          "\"\xc3\xa9\"",
                                          "\"\xff\"",
                                          "\"\t\"",
                                          "\"\\/\"",
                                          "\xef\xbb\xbf",
                                          "nul"};
  const uint64_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  const std::function<std::string(int)> draw = [&](int depth) -> std::string {
    if (depth == 0 || random() % 3 == 0) return std::string(kTokens[random() % std::size(kTokens)]);
    const bool object = random() % 2 == 0;
    std::string text(1, object ? '{' : '[');
    for (uint64_t i = 0, size = random() % 4; i < size; ++i) {
      if (i > 0) text += ',';
      if (object)
        text.append(random() % 2 == 0 ? "\"a\"" : "\"k" + std::to_string(i) + "\"") += ':';
      text += draw(depth - 1);
    }
    return text + (object ? '}' : ']');
  };
  int read = 0;
  for (int round = 0; round < 50'000; ++round) {
    const std::string text = draw(4);
    const Json ours = Json::parse(text, nullptr, false);
    const auto theirs = nlohmann::ordered_json::parse(text, nullptr, false);
    ASSERT_EQ(ours.is_discarded(), theirs.is_discarded()) << text;
    if (ours.is_discarded()) continue;
    ++read;
    ASSERT_EQ(ours.dump(), theirs.dump()) << text;
  }
  EXPECT_GT(read, 10'000);
}

TEST(AppendJsonString, WrittenStringsReadBackUnchanged) {
  std::string all;
  for (int c = 0; c < 128; ++c) all += static_cast<char>(c);
  all += "\u00e4\U0001f600";
  std::string json;
  AppendJsonString(json, all);
  const auto read = ParseJson(json, "test");
  ASSERT_TRUE(read) << read.error().ToString();
  EXPECT_EQ(read->get<std::string>(), all);
}

TEST(AppendJsonString, InvalidUtf8IsReplaced) {
  std::string json;
  AppendJsonString(json,
                   "a\xff"
                   "b");
  EXPECT_EQ(json,
            "\"a\xEF\xBF\xBD"
            "b\"");
}

}  // namespace
}  // namespace muster
