#include "serve/merge_patch.h"

#include <gtest/gtest.h>

#include <random>

#include "core/json_equal.h"

namespace muster::serve {
namespace {

TEST(MergePatchTest, ContainsOnlyDifferences) {
  const Json before = Json::parse(R"({"a":1,"b":{"c":2,"d":[1,2]},"e":"x"})");
  const Json after = Json::parse(R"({"a":1,"b":{"c":3,"d":[1]},"f":true})");
  EXPECT_EQ(ToJsonText(MergePatch(before, after)), R"({"b":{"c":3,"d":[1]},"f":true,"e":null})");
}

TEST(MergePatchTest, EqualValuesGiveAnEmptyPatch) {
  const Json json = Json::parse(R"({"a":{"b":[1,{"c":2}]}})");
  EXPECT_TRUE(MergePatch(json, json).is_null());
}

// Goal: a patch applied to the old value gives the new one. Method: random trees, with
// Json::merge_patch as the reference.
TEST(MergePatchTest, AppliedPatchGivesTheNewValue) {
  std::mt19937 random(17);
  const auto number = [&](int below) {
    return static_cast<int>(random() % static_cast<unsigned>(below));
  };
  const auto tree = [&](auto& self, int depth) -> Json {
    if (depth == 0 || number(3) == 0) return number(3);
    Json json = Json::object();
    for (int i = 0; i < 5; ++i)
      json[std::string(1, static_cast<char>('a' + number(8)))] = self(self, depth - 1);
    return json;
  };
  for (int round = 0; round < 500; ++round) {
    const Json before = {{"x", tree(tree, 4)}};
    const Json after = {{"x", tree(tree, 4)}};
    const Json patch = MergePatch(before, after);
    Json patched = before;
    if (!patch.is_null()) patched.merge_patch(patch);
    // The order of members is not told.
    EXPECT_TRUE(JsonEqual(patched, after)) << before << "\n" << patch;
  }
}

}  // namespace
}  // namespace muster::serve
