#include "core/json_grammar.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

TEST(JsonGrammar, NumbersOfAnySizeAreJson) {
  for (const char* text : {"1e400", "-1E+400", R"({"n":1e400})", R"([0.5e-999999, 1e400 ,"1.e"])",
                           R"({"a\"1e400":-0, "b":123456789012345678901234567890})"}) {
    EXPECT_TRUE(IsJson(text)) << text;
  }
}

TEST(JsonGrammar, WhatOnlyLooksLikeANumberIsNot) {
  for (const char* text :
       {"", "1e400x", "01e400", "-", "1.", "1e", "+1e400", ".5e400", "1e400 1", "1-2", "[1e400,]",
        R"({"n":1e400)", R"(["1e400)", "1e400.5", "NaN", "[1e400-1]", "true1e400"}) {
    EXPECT_FALSE(IsJson(text)) << text;
  }
}

}  // namespace
}  // namespace muster
