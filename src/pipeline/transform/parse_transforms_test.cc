#include <gtest/gtest.h>

#include <fstream>

#include "core/json.h"
#include "muster/migrate.h"

namespace muster::pipeline {
namespace {

// "skipped", "error: …", or the resulting body.
std::string Transformed(const TransformPlan& plan, const std::string& body) {
  const auto transforms = plan.Make();
  if (!transforms) return "error: " + transforms.error().ToString();
  Document document{.id = "1", .routing = {}, .body = body, .position = {}, .defect = {}};
  Arena arena;
  for (const auto& transform : *transforms) {
    const auto wanted = transform->Apply(document, arena);
    if (!wanted) return "error: " + wanted.error().ToString();
    if (!*wanted) return "skipped";
  }
  return std::string(document.body);
}

TEST(Transforms, MatchTheTable) {
  std::ifstream file(MUSTER_TRANSFORM_CASES);
  int cases = 0;
  for (std::string line; std::getline(file, line); ++cases) {
    const Json one = *ParseJson(line, "case");
    SCOPED_TRACE(one["name"].get<std::string>());
    const auto plan = ParseTransforms(one["transforms"].get<std::string>(), "");
    ASSERT_TRUE(plan) << plan.error().ToString();
    const std::string out = Transformed(**plan, one["in"].get<std::string>());
    if (one.contains("skipped")) {
      EXPECT_EQ(out, "skipped");
    } else if (one.contains("error")) {
      EXPECT_TRUE(out.starts_with("error: ") &&
                  out.find(one["error"].get<std::string>()) != std::string::npos)
          << out;
    } else {
      EXPECT_EQ(out, one["out"].get<std::string>());
    }
  }
  EXPECT_GT(cases, 50);
}

TEST(Transforms, EmptyFileIsRefused) {
  for (const char* text : {"", "\n# all gone\n", "null", "~", "[]", "--- \n"}) {
    SCOPED_TRACE(text);
    const auto plan = ParseTransforms(text, "hide.yaml");
    ASSERT_FALSE(plan);
    EXPECT_EQ(plan.error().message, "hide.yaml has no transforms");
    EXPECT_TRUE(ParseTransforms(text, "")) << "no file was named";
  }
}

TEST(Transforms, RenameIndices) {
  const auto plan = ParseTransforms(
      "- rename_index: {a.b: c, '/^logs-([0-9]+)-(.*)$/': 'archive-$2-$1', '/-old/': '-new'}", "t");
  ASSERT_TRUE(plan) << plan.error().ToString();
  EXPECT_EQ((*plan)->TargetName("a.b"), "c");
  EXPECT_EQ((*plan)->TargetName("axb"), "axb");
  EXPECT_EQ((*plan)->TargetName("logs-2024-web"), "archive-web-2024");
  EXPECT_EQ((*plan)->TargetName("my-old-index"), "my-new-index");
  EXPECT_EQ((*plan)->TargetName("other"), "other");
}

TEST(Transforms, ExpressionsThatExplodeElsewhereAreQuick) {
  const auto plan = ParseTransforms(
      "- rename_index: {'/(a+)+b/': x}\n- filter: {field: s, matches: '(a+)+b'}", "t");
  ASSERT_TRUE(plan) << plan.error().ToString();
  const std::string text(50'000, 'a');
  EXPECT_EQ((*plan)->TargetName(text), text);
  EXPECT_EQ(Transformed(**plan, R"({"s":")" + text + "\"}"), "skipped");
  const std::string open(60'000, '(');
  EXPECT_FALSE(ParseTransforms("- rename_index: {'/" + open + "/': x}", "t"));
  EXPECT_FALSE(ParseTransforms("- filter: {field: s, matches: '" + open + "'}", "t"));
}

TEST(Transforms, ColumnsAreTransformed) {
  const auto plan = ParseTransforms(
      "- rename: {a: x}\n- drop: [b]\n- cast: {c: integer}\n- set: {d: 1}\n- hash: [e]", "t");
  ASSERT_TRUE(plan);
  const Collection target = (*plan)->Target(
      {.name = "t",
       .metadata = R"({"columns":[{"name":"a","type":"int"},{"name":"b","type":"int"},)"
                   R"({"name":"c","type":"text"},{"name":"e","type":"int"}],"key":["a"]})"});
  EXPECT_EQ(
      target.metadata,
      R"({"columns":[{"name":"x","type":"int"},{"name":"c","type":"bigint"},)"
      R"({"name":"e","type":"text"},{"name":"d","type":"bigint","nullable":true}],"key":["x"]})");
}

TEST(Transforms, KeyThatLosesAColumnIsDropped) {
  const auto plan = ParseTransforms("- select: [b]", "t");
  EXPECT_EQ((*plan)
                ->Target({.name = "t",
                          .metadata = R"({"columns":[{"name":"a"},{"name":"b"}],"key":["a"]})"})
                .metadata,
            R"({"columns":[{"name":"b"}],"key":[]})");
}

TEST(Transforms, MappingsAreTransformed) {
  const auto plan =
      ParseTransforms("- rename: {o.a: x}\n- drop: [b]\n- hash: [o.x]\n- redact: [c]", "t");
  EXPECT_EQ(
      (*plan)
          ->Target({.name = "t",
                    .metadata = R"({"mappings":{"properties":{"o":{"properties":{"a":{"type":)"
                                R"("long"}}},"b":{"type":"long"},"c":{"type":"text"}}}})"})
          .metadata,
      R"({"mappings":{"properties":{"o":{"properties":{"x":{"type":"keyword"}}},)"
      R"("c":{"type":"text"}}}})");
}

TEST(Transforms, MistakesAreReportedWithTheirPosition) {
  for (const auto& [text, message] : {
           std::pair("rename: {a: b}", "t.yaml:1:1: transforms must be a list"),
           std::pair("- renam: {a: b}", "t.yaml:1:3: unknown transform 'renam'"),
           std::pair("- rename: [a]", "t.yaml:1:11: rename takes a map"),
           std::pair("- drop: a", "t.yaml:1:9: expected a list of fields"),
           std::pair("- drop: [a, a.b]", "part of another"),
           std::pair("- drop: [a..b]", "'a..b' is not a field"),
           std::pair("- cast: {a: float}", "there is no type 'float'"),
           std::pair("- filter: {field: a}", "a filter needs a field and a condition"),
           std::pair("- filter: {field: a, like: b}", "unknown key 'like'"),
           std::pair("- filter: {field: a, matches: '('}", "is not a regular expression"),
           std::pair("- filter: {field: a, above: x}", "a bound must be a number"),
           std::pair("- rename_index: {'/(/': b}", "is not a regular expression"),
           std::pair("- filter: {field: a, below: 1e400}", "t.yaml:1:29: the bound is too large"),
           std::pair("- hash: {fields: [a], key: '${env:NO_SUCH_VARIABLE_HERE}'}",
                     "NO_SUCH_VARIABLE"),
           std::pair("- {drop: [a], select: [b]}", "single name"),
           std::pair("- javascript: '(doc => doc'", "SyntaxError"),
           std::pair("- javascript: {file: /no/such/file.js}", "/no/such/file.js"),
           std::pair("- javascript: {time_ms: 5}", "either a function or a file"),
       }) {
    const auto plan = ParseTransforms(text, "t.yaml");
    ASSERT_FALSE(plan) << text;
    EXPECT_EQ(plan.error().code, Code::kInvalid);
    EXPECT_NE(plan.error().message.find(message), std::string::npos) << plan.error().message;
  }
}

TEST(Transforms, SurviveEveryTruncatedDocument) {
  const auto plan = ParseTransforms(
      "- rename: {a: z}\n- drop: [b.c]\n- set: {n.m: 1}\n- redact: [s]\n- select: [z, b, n, s]",
      "t");
  ASSERT_TRUE(plan);
  const std::string body = R"({"a":[1,{"x":"\"}"}],"b":{"c":1,"d":[{"c":2}]},"n":{},"s":"\\"})";
  for (size_t length = 0; length <= body.size(); ++length) {
    // Whatever the result, nothing outside the text may be read.
    const std::unique_ptr<char[]> exact(new char[length]);
    body.copy(exact.get(), length);
    Document document{
        .id = {}, .routing = {}, .body = {exact.get(), length}, .position = {}, .defect = {}};
    Arena arena;
    const auto transforms = (*plan)->Make();
    for (const auto& transform : *transforms) {
      if (!transform->Apply(document, arena)) break;
    }
    EXPECT_LE(document.body.size(), body.size() + 100);
  }
}

}  // namespace
}  // namespace muster::pipeline
