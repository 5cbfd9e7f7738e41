#include "core/utf8.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

TEST(Utf8, AcceptsEveryLengthOfCharacter) {
  for (std::string_view text : {"", "abc", "é", "€", "😀", "\xEE\x80\x80", "\xF4\x8F\xBF\xBF"}) {
    EXPECT_EQ(ValidUtf8Prefix(text), text.size()) << text;
  }
}

TEST(Utf8, StopsAtTheFirstIllFormedByte) {
  for (std::string_view bad :
       {"\x80", "\xC0\xAF", "\xC1\x81", "\xE0\x80\x80", "\xED\xA0\x80", "\xE2\x82",
        "\xF0\x80\x80\x80", "\xF4\x90\x80\x80", "\xF5", "\xFF", "\xC3("}) {
    std::string text = "é" + std::string(bad);
    EXPECT_EQ(ValidUtf8Prefix(text), 2U) << testing::PrintToString(bad);
  }
}

TEST(Utf8, TakesCodePointsOneByOne) {
  std::string_view text = "aé€😀\xFFz";
  for (char32_t expected : {U'a', U'é', U'€', U'😀', U'\uFFFD', U'z'}) {
    EXPECT_EQ(TakeCodePoint(text), expected);
  }
  EXPECT_TRUE(text.empty());
}

TEST(Utf8, PositionsCountCharactersFromOne) {
  std::string_view text = "ab\nçé€x\n";
  EXPECT_EQ(PositionOf(text, 0), (TextPosition{1, 1}));
  EXPECT_EQ(PositionOf(text, 2), (TextPosition{1, 3}));
  EXPECT_EQ(PositionOf(text, text.find('x')), (TextPosition{2, 4}));
  EXPECT_EQ(PositionOf(text, text.size()), (TextPosition{3, 1}));
  EXPECT_EQ(AtPosition("f.yaml", {2, 4}, "odd"), "f.yaml:2:4: odd");
}

TEST(Utf8, ShortensBetweenCharacters) {
  EXPECT_EQ(Shortened("aé", 3), "aé");
  EXPECT_EQ(Shortened("aéb", 3), "aé…");
  EXPECT_EQ(Shortened("aéb", 2), "a…");
  EXPECT_EQ(Shortened(std::string(300, '\xFF'), 100), std::string(100, '\xFF') + "…");
}

}  // namespace
}  // namespace muster
