#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/json.h"
#include "core/regex.h"
#include "core/yaml.h"
#include "metadata/cluster_version.h"
#include "metadata/object.h"
#include "muster/result.h"

namespace muster::metadata {

// The part of an object that a rule applies to.
enum class RuleScope {
  kObject,            // the members of the object itself
  kContent,           // of its settings, mappings and aliases
  kSettings,          // its settings, by their full names
  kAnalysis,          // analyzers and their parts
  kMappings,          // the root of its mappings
  kFields,            // every field, also those of dynamic templates
  kDynamicTemplates,  // only those
};

// One rule: for which objects of which versions, where, and what changes. docs/guide/metadata.md
// describes the format.
struct Rule {
  std::string why;  // "string fields become text": shown with the places it changed
  std::vector<VersionRange> source = {};  // empty: any
  std::vector<VersionRange> target = {};
  std::vector<Kind> kinds = {};     // empty: any
  std::vector<Pattern> names = {};  // of objects; empty: any
  RuleScope scope = RuleScope::kObject;
  Json when = Json::object();  // member → value, list of values, null (absent), {} (object), "*"
  Json replace = {};           // null: no
  Json rename = Json::object();  // member → new name
  Json values = Json::object();  // member → {value → new value}
  Json set = Json::object();
  Json defaults = Json::object();                 // set if absent
  std::vector<Pattern> remove = {};               // members
  std::optional<std::vector<Pattern>> keep = {};  // all other members are removed
  Json settings = Json::object();                 // of the object, set if anything else was changed
  Json types = Json::object();  // of analysis: part → {type → new type, or null: gone}
  bool leave_out = false;       // the whole object
  bool refuse = false;
  bool quiet = false;  // not worth reporting

  bool AppliesTo(const Object& object, const ClusterVersion& from, const ClusterVersion& to) const;
  // Whether `members` satisfy `when`. Names in `when` may be patterns.
  bool Matches(const Json& members) const;
  // Edits the members of an object, a field or the settings. Returns the names of those that have
  // changed.
  std::vector<std::string> Edit(Json& members) const;
};

// Rules from YAML: {"rules": [rule, …]}. kInvalid says where and what is wrong.
Result<std::vector<Rule>> ParseRules(std::string_view text, std::string_view origin);

}  // namespace muster::metadata
