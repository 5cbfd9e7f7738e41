#include "core/yaml.h"

#include <gtest/gtest.h>

#include <functional>
#include <random>

namespace muster {
namespace {

std::string ErrorOf(std::string_view text, const YamlLimits& limits = {}) {
  auto document = ParseYaml(text, "p.yaml", limits);
  if (document) return "accepted";
  EXPECT_EQ(document.error().code, Code::kInvalid);
  return document.error().message;
}

// A compact dump of a tree: scalars bare or quoted, ~ for null.
std::string Show(const YamlNode& node) {
  std::string shown;
  switch (node.kind) {
    case YamlNode::Kind::kNull:
      return "~";
    case YamlNode::Kind::kScalar:
      return node.quoted ? "'" + node.text + "'" : node.text;
    case YamlNode::Kind::kSequence:
      for (const YamlNode& item : node.items) shown += (shown.empty() ? "" : " ") + Show(item);
      return "[" + shown + "]";
    case YamlNode::Kind::kMap:
      for (const YamlEntry& entry : node.entries) {
        shown += (shown.empty() ? "" : " ") + Show(entry.key) + ":" + Show(entry.value);
      }
      return "{" + shown + "}";
  }
  return shown;
}

std::string ShowText(std::string_view text) {
  auto document = ParseYaml(text, "p.yaml");
  return document ? Show(document->root) : document.error().message;
}

TEST(Yaml, ReadsTheCommonShapes) {
  EXPECT_EQ(ShowText("ranks:\n  - name: a  # first\n    size: 007\n  - 'b'\nnone: ~\nempty:\n"),
            "{ranks:[{name:a size:007} 'b'] none:~ empty:~}");
  EXPECT_EQ(ShowText(R"({"a": [1, "2", {"b": null}]})"), "{'a':[1 '2' {'b':~}]}");
  EXPECT_EQ(ShowText("a: |\n  x\n  y\n"), "{a:'x\ny\n'}");
  EXPECT_EQ(ShowText(""), "~");
  EXPECT_EQ(ShowText("# nothing\n"), "~");
  EXPECT_EQ(ShowText("a: !!str 5"), "{a:'5'}");
}

TEST(Yaml, NodesHavePositions) {
  auto document = ParseYaml("é: 1\nb:\n  - ü: [x, y]\n", "p.yaml");
  ASSERT_TRUE(document);
  const YamlNode& list = document->root.Find("b")->items.at(0).entries.at(0).value;
  EXPECT_EQ(list.position, (TextPosition{3, 8}));
  EXPECT_EQ(list.items.at(1).position, (TextPosition{3, 12}));
  EXPECT_EQ(document->At(list, "too many").message, "p.yaml:3:8: too many");
  EXPECT_EQ(document->root.Find("missing"), nullptr);
}

TEST(Yaml, LongLineIsParsedQuickly) {
  // Columns are counted in characters: counting each from the line start would take hours.
  std::string text = "[";
  while (text.size() < 2'000'000) text += "é, ";
  text += "]";
  const auto document = ParseYaml(text, "p.yaml", {.nodes = 1'000'000});
  ASSERT_TRUE(document) << document.error().message;
  const auto& items = document->root.items;
  ASSERT_GT(items.size(), 400'000U);
  for (size_t i = 0; i < items.size(); i += 1'000) {
    ASSERT_EQ(items[i].position, (TextPosition{1, 2 + 3 * i}));
  }
  EXPECT_EQ(items.back().position, (TextPosition{1, 2 + 3 * (items.size() - 1)}));
}

TEST(Yaml, PositionsMatchTheText) {
  const std::string text = "ä:\n  - x\r\n  - {é: \"€ü\", z: [ 😀, y ]}\n" + std::string(300, '#') +
                           "é\nb: " + std::string(600, ' ') + "é\n";
  const auto document = ParseYaml(text, "p.yaml");
  ASSERT_TRUE(document) << document.error().message;
  const std::function<void(const YamlNode&)> check = [&](const YamlNode& node) {
    if (node.kind == YamlNode::Kind::kScalar) {
      const size_t at = text.find(node.quoted ? '"' + node.text : node.text,
                                  node.text == "é" && node.position.line > 4 ? 400 : 0);
      EXPECT_EQ(node.position, PositionOf(text, at)) << node.text;
    }
    for (const YamlNode& item : node.items) check(item);
    for (const YamlEntry& entry : node.entries) {
      check(entry.key);
      check(entry.value);
    }
  };
  check(document->root);
}

TEST(Yaml, ErrorsSayWhereAndWhy) {
  EXPECT_EQ(ErrorOf("a: [1, 2\nb: 3").substr(0, 9), "p.yaml:2:") << ErrorOf("a: [1, 2\nb: 3");
  EXPECT_EQ(ErrorOf("a: b: c").substr(0, 12), "p.yaml:1:5: ") << ErrorOf("a: b: c");
  EXPECT_EQ(ErrorOf("ü: \"x").substr(0, 9), "p.yaml:1:");
  EXPECT_EQ(ErrorOf("a: \xff"), "p.yaml:1:4: a byte that is not UTF-8 text");
  EXPECT_EQ(ErrorOf(std::string_view("a\0b", 3)), "p.yaml:1:2: a byte that is not UTF-8 text");
  EXPECT_EQ(ErrorOf("a: *nowhere").substr(0, 12), "p.yaml:1:4: ");
}

TEST(Yaml, RejectsDuplicateKeysWithBothPositions) {
  EXPECT_EQ(ErrorOf("a: 1\nb: 2\na: 3\n"),
            "p.yaml:3:1: the key \"a\" occurs twice in this map, first at 1:1");
  EXPECT_EQ(ErrorOf("{a: 1, \"a\": 2}"),
            "p.yaml:1:8: the key \"a\" occurs twice in this map, first at 1:2");
}

TEST(Yaml, RejectsUnsupportedYaml) {
  EXPECT_EQ(ErrorOf("a: 1\n---\nb: 2\n"), "p.yaml:2:1: a second document begins here");
  EXPECT_EQ(ErrorOf("[a]: 1"), "p.yaml:1:1: a key must be a plain or quoted string");
  EXPECT_EQ(ErrorOf("a: !ruby/object x"), "p.yaml:1:4: the tag !ruby/object is not supported");
  EXPECT_EQ(ErrorOf("!!set {a}"), "p.yaml:1:1: the tag tag:yaml.org,2002:set is not supported");
}

TEST(Yaml, ExpandsAliases) {
  EXPECT_EQ(ShowText("a: &x [1, 2]\nb: *x\nc: [*x]\n"), "{a:[1 2] b:[1 2] c:[[1 2]]}");
  EXPECT_EQ(ErrorOf("&x [*x]"), "p.yaml:1:5: the alias refers to a value that contains it");
}

TEST(Yaml, BoundsBytesDepthAndNodes) {
  EXPECT_EQ(ErrorOf("[[[]]]", {.depth = 3}), "accepted");
  EXPECT_EQ(ErrorOf("[[[[]]]]", {.depth = 3}), "p.yaml:1:4: nested deeper than 3 levels");
  EXPECT_EQ(ErrorOf("[&a [[]], [*a]]", {.depth = 3}), "p.yaml:1:12: nested deeper than 3 levels");
  EXPECT_EQ(ErrorOf("[1, 2]", {.nodes = 3}), "accepted");
  EXPECT_EQ(ErrorOf("[1, 2, 3]", {.nodes = 3}), "p.yaml:1:8: more than 3 values, aliases expanded");
  EXPECT_EQ(ErrorOf("[1, 2]", {.bytes = 5}), "p.yaml: larger than the limit of 5 bytes");
  EXPECT_NE(ErrorOf(std::string(100'000, '[')), "accepted");
  EXPECT_NE(ErrorOf(std::string(100'000, '{')), "accepted");
}

TEST(Yaml, BillionLaughsStopAtTheLimit) {
  std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 10; ++i) {
    std::string last = "*a" + std::to_string(i - 1);
    bomb += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + last;
    for (int n = 0; n < 9; ++n) bomb += ", " + last;
    bomb += "]\n";
  }
  EXPECT_NE(ErrorOf(bomb).find("more than 100000 values"), std::string::npos) << ErrorOf(bomb);
}

TEST(Yaml, RandomYamlIsParsedOrInvalid) {
  uint64_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  constexpr std::string_view kAlphabet = "aab1 \n\n  --::,,[]{}&*!|>'\"#%?~\t\\\r\xc3\xa9\xff";
  int accepted = 0;
  for (int round = 0; round < 50'000; ++round) {
    std::string text;
    for (uint64_t n = random() % 24; n > 0; --n) text += kAlphabet[random() % kAlphabet.size()];
    auto document = ParseYaml(text, "p.yaml");
    if (document) {
      ++accepted;
    } else {
      EXPECT_EQ(document.error().message.find("p.yaml:"), 0U) << document.error().message;
    }
  }
  EXPECT_GT(accepted, 1000);
}

}  // namespace
}  // namespace muster
