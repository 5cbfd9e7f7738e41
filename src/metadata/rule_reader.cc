#include <set>

#include "metadata/rule.h"

namespace muster::metadata {
namespace {

constexpr EnumNames<RuleScope, 7> kScopes{{{{RuleScope::kObject, "object"},
                                            {RuleScope::kContent, "content"},
                                            {RuleScope::kSettings, "settings"},
                                            {RuleScope::kAnalysis, "analysis"},
                                            {RuleScope::kMappings, "mappings"},
                                            {RuleScope::kFields, "fields"},
                                            {RuleScope::kDynamicTemplates, "dynamic_templates"}}}};

// Reads one rule; every error says where.
class RuleReader {
 public:
  RuleReader(const YamlDocument& document, const YamlNode& node)
      : document_(document), node_(node) {}

  Result<Rule> Read() {
    if (node_.kind != YamlNode::Kind::kMap) return document_.At(node_, "a rule is a map");
    static const std::set<std::string> kKeys = {
        "why",      "source", "target",    "kinds",  "names",   "at",     "when",
        "replace",  "rename", "set",       "values", "default", "remove", "keep",
        "settings", "types",  "leave_out", "refuse", "quiet"};
    for (const YamlEntry& entry : node_.entries) {
      if (!kKeys.contains(entry.key.text)) {
        return document_.At(entry.key, "unknown key '" + entry.key.text + "'");
      }
    }
    MUSTER_TRY(ReadConditions());
    MUSTER_TRY(ReadEdits());
    return std::move(rule_);
  }

 private:
  Status ReadConditions() {
    const YamlNode* why = node_.Find("why");
    if (why == nullptr || why->kind != YamlNode::Kind::kScalar || why->text.empty()) {
      return document_.At(node_, "the rule has no 'why': say what it does, for reports");
    }
    rule_.why = why->text;
    MUSTER_TRY(ReadRanges("source", rule_.source));
    MUSTER_TRY(ReadRanges("target", rule_.target));
    MUSTER_ASSIGN(const auto kinds, TextsOf("kinds"));
    for (const YamlNode* kind : kinds) {
      const auto found = kKinds.Find(kind->text);
      if (!found) return document_.At(*kind, "unknown kind of objects '" + kind->text + "'");
      rule_.kinds.push_back(*found);
    }
    MUSTER_TRY(ReadPatterns("names", rule_.names));
    if (const YamlNode* at = node_.Find("at")) {
      const auto scope = kScopes.Find(at->text);
      if (!scope) return document_.At(*at, "a rule cannot look at '" + at->text + "'");
      rule_.scope = *scope;
    }
    return ReadMap("when", rule_.when);
  }

  Status ReadEdits() {
    MUSTER_TRY(ReadMap("replace", rule_.replace));
    MUSTER_TRY(ReadMap("rename", rule_.rename));
    MUSTER_TRY(ReadMap("values", rule_.values));
    MUSTER_TRY(ReadMap("set", rule_.set));
    MUSTER_TRY(ReadMap("default", rule_.defaults));
    MUSTER_TRY(ReadMap("settings", rule_.settings));
    MUSTER_TRY(ReadMap("types", rule_.types));
    MUSTER_TRY(ReadPatterns("remove", rule_.remove));
    if (node_.Find("keep") != nullptr) {
      MUSTER_TRY(ReadPatterns("keep", rule_.keep.emplace()));
    }
    MUSTER_TRY(ReadFlag("leave_out", rule_.leave_out));
    MUSTER_TRY(ReadFlag("refuse", rule_.refuse));
    MUSTER_TRY(ReadFlag("quiet", rule_.quiet));
    for (const auto& [name, value] : rule_.values.items()) {
      if (!value.is_object()) return document_.At(*node_.Find("values"), "expected maps of values");
    }
    for (const auto& [name, value] : rule_.types.items()) {
      if (!value.is_object()) return document_.At(*node_.Find("types"), "expected maps of types");
    }
    const bool edits = !rule_.replace.is_null() || !rule_.rename.empty() || !rule_.values.empty() ||
                       !rule_.set.empty() || !rule_.defaults.empty() || !rule_.remove.empty() ||
                       rule_.keep || !rule_.types.empty();
    if (int{edits} + int{rule_.leave_out} + int{rule_.refuse} != 1) {
      return document_.At(node_,
                          "a rule either changes something, leaves objects out or refuses "
                          "them");
    }
    if (rule_.types.empty() != (rule_.scope != RuleScope::kAnalysis)) {
      return document_.At(node_, "'types' and 'at: analysis' belong together");
    }
    return {};
  }

  // A scalar, or a list of them.
  Result<std::vector<const YamlNode*>> TextsOf(std::string_view key) const {
    std::vector<const YamlNode*> texts;
    const YamlNode* node = node_.Find(key);
    if (node == nullptr) return texts;
    if (node->kind == YamlNode::Kind::kSequence) {
      for (const YamlNode& item : node->items) texts.push_back(&item);
    } else {
      texts.push_back(node);
    }
    for (const YamlNode* one : texts) {
      if (one->kind != YamlNode::Kind::kScalar) return document_.At(*one, "expected a string");
    }
    return texts;
  }

  Status ReadRanges(std::string_view key, std::vector<VersionRange>& ranges) const {
    MUSTER_ASSIGN(const auto texts, TextsOf(key));
    for (const YamlNode* text : texts) {
      auto range = VersionRange::Parse(text->text);
      if (!range) return document_.At(*text, range.error().ToString());
      ranges.push_back(*std::move(range));
    }
    return {};
  }

  Status ReadPatterns(std::string_view key, std::vector<Pattern>& patterns) const {
    MUSTER_ASSIGN(const auto texts, TextsOf(key));
    for (const YamlNode* text : texts) {
      auto pattern = Pattern::Parse(text->text);
      if (!pattern) return document_.At(*text, pattern.error().ToString());
      patterns.push_back(*std::move(pattern));
    }
    return {};
  }

  Status ReadMap(std::string_view key, Json& value) const {
    const YamlNode* node = node_.Find(key);
    if (node == nullptr) return {};
    if (node->kind != YamlNode::Kind::kMap) {
      return document_.At(*node, "'" + std::string(key) + "' takes a map");
    }
    auto json = ParseJson(YamlToJson(*node), document_.origin);
    if (!json) return document_.At(*node, json.error().message);
    value = *std::move(json);
    return CheckShape(*node, value);
  }

  Status CheckShape(const YamlNode& node, const Json& value) const {
    if (!value.is_object()) return {};
    if (value.contains("$from") && !value["$from"].is_string()) {
      return document_.At(node, "$from takes the name of a member");
    }
    for (const auto& [name, member] : value.items()) MUSTER_TRY(CheckShape(node, member));
    return {};
  }

  Status ReadFlag(std::string_view key, bool& flag) const {
    const YamlNode* node = node_.Find(key);
    if (node == nullptr) return {};
    if (node->text != "true" && node->text != "false") {
      return document_.At(*node, "expected true or false");
    }
    flag = node->text == "true";
    return {};
  }

  const YamlDocument& document_;
  const YamlNode& node_;
  Rule rule_;
};

}  // namespace

Result<std::vector<Rule>> ParseRules(std::string_view text, std::string_view origin) {
  MUSTER_ASSIGN(const YamlDocument document, ParseYaml(text, origin));
  const YamlNode* list = document.root.Find("rules");
  if (list == nullptr || list->kind != YamlNode::Kind::kSequence) {
    return document.At(document.root, "expected a list named 'rules'");
  }
  if (document.root.entries.size() > 1) {
    return document.At(document.root.entries.back().key, "expected nothing beside 'rules'");
  }
  std::vector<Rule> rules;
  for (const YamlNode& node : list->items) {
    MUSTER_ASSIGN(Rule rule, RuleReader(document, node).Read());
    rules.push_back(std::move(rule));
  }
  return rules;
}

}  // namespace muster::metadata
