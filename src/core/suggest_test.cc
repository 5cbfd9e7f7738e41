#include "core/suggest.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

TEST(Suggest, SuggestsOnlySimilarWords) {
  std::vector<std::string> commands{"doctor", "demo", "sim", "completions"};
  EXPECT_EQ(DidYouMean("docter", commands), "doctor");
  EXPECT_EQ(DidYouMean("dmeo", commands), "demo");
  EXPECT_EQ(DidYouMean("compl", commands), "completions");
  EXPECT_EQ(DidYouMean("frobnicate", commands), std::nullopt);
  EXPECT_EQ(DidYouMean("x", commands), std::nullopt);
  EXPECT_EQ(DidYouMean("--jsno", {"--json", "--store"}), "--json");
}

}  // namespace
}  // namespace muster
