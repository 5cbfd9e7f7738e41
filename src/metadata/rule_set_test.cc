#include "metadata/rule_set.h"

#include <gtest/gtest.h>

#include <fstream>

#include "core/json_equal.h"
#include "core/json_fields.h"
#include "support/temporary_folder.h"

namespace muster::metadata {
namespace {

std::optional<int> NumberOf(const Json& one, const char* name) {
  if (!one.contains(name)) return std::nullopt;
  return one[name].get<int>();
}

TEST(MetadataRules, MatchTheTable) {
  const auto rules = RuleSet::BuiltIn();
  ASSERT_TRUE(rules) << rules.error().ToString();
  std::ifstream file(MUSTER_METADATA_CASES);
  int cases = 0;
  for (std::string line; std::getline(file, line); ++cases) {
    const Json one = *ParseJson(line, "case");
    SCOPED_TRACE(one["name"].get<std::string>());
    const Object object{*kKinds.Find(TextIn(one, "kind")), TextIn(one, "object"), one["body"]};
    const Versions versions{ClusterVersion::Parse(TextIn(one, "from")),
                            ClusterVersion::Parse(TextIn(one, "to"))};
    const Verdict verdict =
        rules->Apply(object, versions,
                     {.shards = NumberOf(one, "shards"), .replicas = NumberOf(one, "replicas")});
    EXPECT_EQ(kOutcomes.NameOf(verdict.outcome), TextIn(one, "outcome")) << verdict.Detail();
    if (one.contains("out")) {
      EXPECT_TRUE(JsonEqual(verdict.body, one["out"]))
          << "  is " << verdict.body << "\n not " << one["out"];
    }
    for (const Json& words : one["says"]) {
      EXPECT_NE(verdict.Detail().find(words.get<std::string>()), std::string::npos)
          << verdict.Detail();
    }
    if (!verdict.IsKept()) {
      EXPECT_FALSE(verdict.reason.empty());
      continue;
    }
    // What fits the target fits it still.
    const Verdict again =
        rules->Apply({object.kind, object.name, verdict.body}, {versions.to, versions.to}, {});
    EXPECT_EQ(again.outcome, Outcome::kOk) << again.Detail();
    EXPECT_TRUE(JsonEqual(again.body, verdict.body)) << again.body << "\n not " << verdict.body;
  }
  EXPECT_GT(cases, 50);
}

class OwnRules : public ::testing::Test {
 protected:
  Verdict ApplyFile(const std::string& name, const std::string& text, const Object& object) {
    const std::string path = folder_.path() + "/" + name;
    std::ofstream(path) << text;
    RuleSet rules = RuleSet::BuiltIn().value();
    if (const Status added = rules.AddFile(path); !added) {
      return {.outcome = Outcome::kRefused, .reason = added.error().ToString()};
    }
    return rules.Apply(object, versions_, {});
  }

  testing::TemporaryFolder folder_;
  const Versions versions_{{Engine::kElasticsearch, 2, 4}, {Engine::kOpenSearch, 2, 19}};
  const Object books_{
      Kind::kIndex, "books",
      Json{{"mappings",
            Json{{"book", Json{{"properties", Json{{"t", Json{{"type", "string"}}}}}}}}}}};
};

TEST_F(OwnRules, GoBeforeTheBuiltInOnes) {
  const Verdict verdict = ApplyFile("mine.yaml", R"(
rules:
- why: titles become search_as_you_type
  names: b*
  at: fields
  when: {type: string}
  set: {type: search_as_you_type}
)",
                                    books_);
  EXPECT_EQ(verdict.outcome, Outcome::kChanged) << verdict.reason;
  EXPECT_EQ(verdict.body["mappings"]["properties"]["t"]["type"], "search_as_you_type");
  EXPECT_NE(verdict.Detail().find("titles become search_as_you_type: t"), std::string::npos);
}

TEST_F(OwnRules, LeaveOutAndRefuse) {
  const Verdict left_out =
      ApplyFile("a.yaml", "rules: [{why: not needed, names: books, leave_out: true}]", books_);
  EXPECT_EQ(left_out.outcome, Outcome::kLeftOut);
  EXPECT_EQ(left_out.reason, "not needed");
  const Verdict refused = ApplyFile(
      "b.yaml", "rules: [{why: no strings, at: fields, when: {type: string}, refuse: true}]",
      books_);
  EXPECT_EQ(refused.outcome, Outcome::kRefused);
  EXPECT_EQ(refused.reason, "no strings: t");
}

TEST_F(OwnRules, CanBeAFunction) {
  const Verdict changed = ApplyFile(
      "a.js", "(o) => { o.body.settings = {'index.codec': o.kind + o.name}; return o; }", books_);
  EXPECT_EQ(changed.body["settings"]["index.codec"], "indexbooks") << changed.reason;
  EXPECT_EQ(changed.body["mappings"]["properties"]["t"]["type"], "text");
  EXPECT_EQ(ApplyFile("b.js", "(o) => null", books_).outcome, Outcome::kLeftOut);
  const Verdict thrown = ApplyFile("c.js", "(o) => { throw new Error('no'); }", books_);
  EXPECT_EQ(thrown.outcome, Outcome::kRefused);
  EXPECT_NE(thrown.reason.find("no"), std::string::npos);
  EXPECT_EQ(ApplyFile("d.js", "(o) => 7", books_).outcome, Outcome::kRefused);
}

TEST_F(OwnRules, FunctionCanRename) {
  const Verdict renamed = ApplyFile("a.js", "(o) => ({...o, name: o.name + '-2'})", books_);
  EXPECT_EQ(renamed.outcome, Outcome::kChanged) << renamed.reason;
  EXPECT_EQ(renamed.name, "books-2");
  EXPECT_NE(renamed.Detail().find("renamed to books-2"), std::string::npos) << renamed.Detail();
  EXPECT_EQ(ApplyFile("b.js", "(o) => ({body: o.body})", books_).name, "books");
}

// What a function returns is either taken or refused, and never ignored.
TEST_F(OwnRules, MistakesOfAFunctionAreRefused) {
  const auto refusal = [&](const std::string& text) {
    const Verdict verdict = ApplyFile("a.js", text, books_);
    EXPECT_EQ(verdict.outcome, Outcome::kRefused) << text;
    return verdict.reason;
  };
  EXPECT_NE(refusal("(o) => { o.name = 'b'; }").find("returned nothing"), std::string::npos);
  EXPECT_NE(refusal("(o) => ({...o, name: ''})").find("a name that"), std::string::npos);
  EXPECT_NE(refusal("(o) => ({...o, name: 7})").find("a name that"), std::string::npos);
  EXPECT_NE(refusal("(o) => ({...o, kind: 'template'})").find("'kind'"), std::string::npos);
  EXPECT_NE(refusal("(o) => ({...o, settings: {}})").find("'settings'"), std::string::npos);
  EXPECT_NE(refusal("(o) => ({name: o.name})").find("with a body"), std::string::npos);
}

}  // namespace
}  // namespace muster::metadata
