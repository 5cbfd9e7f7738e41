#include <gtest/gtest.h>

#include <fstream>

#include "core/json.h"
#include "muster/migrate.h"
#include "pipeline/flow/transform_chain.h"

namespace muster::pipeline {
namespace {

// "skipped", "error: …", or what was made of the document "1", routed by "r": its body or, if there
// are several or its id or routing has changed, a line "id/routing body" for each.
std::string Transformed(const TransformPlan& plan, const std::string& body) {
  auto transforms = TransformChain::Of(plan, "orders");
  if (!transforms) return "error: " + transforms.error().ToString();
  const Document document{.id = "1", .routing = "r", .body = body, .position = {}, .defect = {}};
  Arena arena;
  TransformChain::Made made;
  if (const Status done = transforms->Apply(document, arena, made); !done) {
    return "error: " + done.error().ToString();
  }
  if (made.documents.empty()) return "skipped";
  const Document& first = made.documents[0];
  if (made.documents.size() == 1 && first.id == "1" && first.routing == "r" &&
      first.target.empty()) {
    return std::string(first.body);
  }
  std::string lines;
  for (const Document& one : made.documents) {
    lines.append(lines.empty() ? "" : "\n").append(one.id).append("/").append(one.routing);
    if (!one.target.empty()) lines.append(" in ").append(one.target);
    lines.append(" ").append(one.body);
  }
  return lines;
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
  const Result<Collection> target = (*plan)->Target(
      {.name = "t",
       .metadata = R"({"columns":[{"name":"a","type":"int"},{"name":"b","type":"int"},)"
                   R"({"name":"c","type":"text"},{"name":"e","type":"int"}],"key":["a"]})"});
  EXPECT_EQ(
      target->metadata,
      R"({"columns":[{"name":"x","type":"int"},{"name":"c","type":"bigint"},)"
      R"({"name":"e","type":"text"},{"name":"d","type":"bigint","nullable":true}],"key":["x"]})");
}

TEST(Transforms, KeyThatLosesAColumnIsDropped) {
  const auto plan = ParseTransforms("- select: [b]", "t");
  EXPECT_EQ((*plan)
                ->Target({.name = "t",
                          .metadata = R"({"columns":[{"name":"a"},{"name":"b"}],"key":["a"]})"})
                ->metadata,
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
          ->metadata,
      R"({"mappings":{"properties":{"o":{"properties":{"x":{"type":"keyword"}}},)"
      R"("c":{"type":"text"}}}})");
}

// A collection's metadata after a script, or "error: …".
std::string MetadataAfter(const std::string& transforms, const std::string& metadata) {
  const auto plan = ParseTransforms(transforms, "t.yaml");
  if (!plan) return "error: " + plan.error().ToString();
  const auto target = (*plan)->Target({.name = "orders", .metadata = metadata});
  return target ? target->metadata : "error: " + target.error().ToString();
}

TEST(Transforms, AScriptEditsMetadataInItsTurn) {
  EXPECT_EQ(
      MetadataAfter("- rename: {a: b}\n"
                    "- javascript: |\n"
                    "    ({metadata: (metadata, {collection}) => {\n"
                    "      metadata.mappings.properties.b.type = 'keyword';\n"
                    "      return {...metadata, aliases: {[collection + '-all']: {}}};\n"
                    "    }})\n"
                    "- rename: {b: c}",
                    R"({"mappings":{"properties":{"a":{"type":"text"}}},"settings":{"n":"1"}})"),
      R"({"mappings":{"properties":{"c":{"type":"keyword"}}},"settings":{"n":"1"},)"
      R"("aliases":{"orders-all":{}}})");
  EXPECT_EQ(MetadataAfter("- javascript: '({metadata: () => ({mappings: {}})})'",
                          R"({"mappings":{"a":1},"cluster_uuid":"c1"})"),
            R"({"mappings":{},"cluster_uuid":"c1"})")
      << "by this a sink recognizes its own cluster";
}

TEST(Transforms, ScriptFilesArePartOfTheirIdentity) {
  const std::string path = ::testing::TempDir() + "identity.js";
  const std::string rules = "- javascript: {file: " + path + "}";
  std::ofstream(path) << "(doc) => doc";
  const std::string first = ParseTransforms(rules, "t").value()->Scripts();
  std::ofstream(path) << "(doc) => ({...doc})";
  EXPECT_NE(ParseTransforms(rules, "t").value()->Scripts(), first);
  EXPECT_EQ(ParseTransforms("- javascript: '(doc) => doc'", "t").value()->Scripts(), "");
}

TEST(Transforms, AScriptWithMetadataAloneEditsNoDocuments) {
  const auto plan = ParseTransforms("- javascript: '({metadata: (m) => m})'", "t").value();
  EXPECT_FALSE(plan->EditsDocuments());
  EXPECT_TRUE(ParseTransforms("- javascript: '(d) => d'", "t").value()->EditsDocuments());
}

TEST(Transforms, MetadataThatASinkCannotUseIsRefused) {
  for (const auto& [body, says] : {
           std::pair("undefined", "metadata must return an object, but returned nothing"),
           std::pair("null", "but returned null"),
           std::pair("[1]", "but returned [1]"),
           std::pair("({mappings: []})", "the result of metadata: mappings must be an object"),
           std::pair("({settings: 1})", "settings must be an object"),
           std::pair("({aliases: 'a'})", "aliases must be an object"),
           std::pair("({mappings: {properties: []}})", "properties must be an object"),
           std::pair("({mappings: {properties: {a: {properties: {b: 5}}}}})", "mapping of 'b'"),
           std::pair("({mappings: {_doc: {properties: {a: {type: 1}}}}})", "mapping of 'a'"),
           std::pair("({columns: {}})", "columns must be an array"),
           std::pair("({columns: [{}]})", "a column must be"),
           std::pair("({columns: [{name: 'a', type: 1}]})", "a column must be"),
           std::pair("({columns: [], key: 'a'})", "key must be an array"),
           std::pair("null.a", "TypeError"),
           std::pair("(() => { for (;;); })()", "stopped after 50 ms"),
           std::pair("(() => { const m = {}; m.m = m; return m })()", "circular"),
           std::pair("Array.from({length: 1e6}, () => 'x'.repeat(1e6)).map((x, i) => x + i)",
                     "KiB of memory"),
       }) {
    const std::string time = std::string(says) == "KiB of memory" ? "5000" : "50";
    const std::string out =
        MetadataAfter("- javascript: {time_ms: " + time +
                          ", memory_mb: 8, function: \"({metadata: () => " + body + "})\"}",
                      "{}");
    EXPECT_TRUE(out.starts_with("error: ") && out.find(says) != std::string::npos)
        << body << ": " << out;
  }
}

TEST(Transforms, MistakesAreReportedWithTheirPosition) {
  for (const auto& [text, message] : {
           std::pair("rename: {a: b}", "t.yaml:1:1: transforms must be a list"),
           std::pair("- renam: {a: b}", "t.yaml:1:3: unknown transform 'renam'"),
           std::pair("- rename: [a]", "t.yaml:1:11: rename takes a map"),
           std::pair("- drop: a", "t.yaml:1:9: expected a list of fields"),
           std::pair("- drop: [a, a.b]", "part of another"),
           std::pair("- drop: [a..b]", "'a..b' is not a field"),
           std::pair("- cast: {a: float}", "unknown type 'float'"),
           std::pair("- filter: {field: a}", "a filter needs a field and a condition"),
           std::pair("- filter: {field: a, like: b}", "unknown key 'like'"),
           std::pair("- filter: {field: a, matches: '('}", "is not a regular expression"),
           std::pair("- filter: {field: a, above: x}", "a bound must be a number"),
           std::pair("- rename_index: {'/(/': b}", "is not a regular expression"),
           std::pair("- hash: {fields: [a], key: '${env:NO_SUCH_VARIABLE_HERE}'}",
                     "NO_SUCH_VARIABLE"),
           std::pair("- {drop: [a], select: [b]}", "single name"),
           std::pair("- javascript: '(doc => doc'", "SyntaxError"),
           std::pair("- javascript: {file: /no/such/file.js}", "/no/such/file.js"),
           std::pair("- javascript: {time_ms: 5}", "either a function or a file"),
           std::pair("- javascript: '({})'", "neither the function transform nor metadata"),
           std::pair("- javascript: '({transfrom: (doc) => doc})'",
                     "has 'transfrom', which is not one of its functions"),
           std::pair("- javascript: '({transform: 5})'", "has 'transform', which is not one"),
           std::pair("- javascript: '[(doc) => doc]'", "has '0', which is not one"),
           std::pair("- javascript: '5'", "the value of the script is not a function"),
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
    const Document document{
        .id = {}, .routing = {}, .body = {exact.get(), length}, .position = {}, .defect = {}};
    Arena arena;
    auto transforms = TransformChain::Of(**plan, "t");
    TransformChain::Made made;
    if (!transforms->Apply(document, arena, made)) continue;
    for (const Document& one : made.documents) EXPECT_LE(one.body.size(), body.size() + 100);
  }
}

}  // namespace
}  // namespace muster::pipeline
