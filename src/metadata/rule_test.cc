#include "metadata/rule.h"

#include <gtest/gtest.h>

namespace muster::metadata {
namespace {

std::string Problem(const std::string& rule) {
  const auto rules = ParseRules("rules:\n- " + rule, "mine.yaml");
  return rules ? "" : rules.error().ToString();
}

TEST(MetadataRule, MistakesAreNamedWithTheirPlace) {
  const auto says = [](const std::string& rule, const std::string& words) {
    const std::string problem = Problem(rule);
    EXPECT_TRUE(problem.starts_with("mine.yaml:2:")) << problem;
    EXPECT_NE(problem.find(words), std::string::npos) << problem;
  };
  says("{at: fields, remove: a}", "no 'why'");
  says("{why: x, removes: a}", "unknown key 'removes'");
  says("{why: x, at: field, remove: a}", "'field'");
  says("{why: x, kinds: indices, remove: a}", "unknown kind of objects 'indices'");
  says("{why: x, target: solr, remove: a}", "'solr' is not a range");
  says("{why: x, when: [a], remove: a}", "'when' takes a map");
  says("{why: x}", "either changes something");
  says("{why: x, remove: a, leave_out: true}", "either changes something");
  says("{why: x, leave_out: perhaps}", "true or false");
  says("{why: x, at: fields, types: {filter: {a: b}}}", "belong together");
  says("{why: x, at: fields, replace: {a: {$from: 1}}}", "$from");
  says("{why: x, at: fields, values: {a: b}}", "maps of values");
  says("x", "a rule is a map");
  EXPECT_NE(ParseRules("- a", "mine.yaml").error().message.find("'rules'"), std::string::npos);
  EXPECT_NE(ParseRules("rules: []\nmore: 1", "m").error().message.find("nothing beside"),
            std::string::npos);
}

Json Edited(const std::string& rule, Json members) {
  const auto rules = ParseRules("rules:\n- " + rule, "mine.yaml");
  if (!rules) return rules.error().ToString();
  if (rules->front().Matches(members)) rules->front().Edit(members);
  return members;
}

TEST(MetadataRule, EditsMembers) {
  const Json field{{"type", "a"}, {"index", "no"}, {"norms", Json{{"enabled", false}}}};
  EXPECT_EQ(Edited("{why: x, when: {type: [b, c]}, remove: '*'}", field), field);
  EXPECT_EQ(Edited("{why: x, when: {type: [b, a]}, remove: [i*, norms]}", field),
            (Json{{"type", "a"}}));
  EXPECT_EQ(Edited("{why: x, when: {other: null, norms: {}}, keep: type}", field),
            (Json{{"type", "a"}}));
  EXPECT_EQ(Edited("{why: x, when: {norms.enabled: false}, set: {norms: {$from: norms.enabled}}, "
                   "values: {index: {'no': false}}}",
                   field),
            (Json{{"type", "a"}, {"index", false}, {"norms", false}}));
  EXPECT_EQ(Edited("{why: x, when: {type: '*'}, rename: {index: type}, default: {new: 1, type: 2}, "
                   "remove: norms}",
                   field),
            (Json{{"type", "a"}, {"new", 1}}));
  EXPECT_EQ(Edited("{why: x, replace: {t: {$from: type, $map: {a: z}}, u: {$from: none}, "
                   "v: {$from: none, $default: 5}, w: {y: {$from: none}}}}",
                   field),
            (Json{{"t", "z"}, {"v", 5}}));
}

}  // namespace
}  // namespace muster::metadata
