#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "metadata/mappings.h"
#include "metadata/object.h"
#include "metadata/rule.h"
#include "metadata/rule_set.h"

namespace muster::metadata {

// One object on its way to another version: its settings flat, its mappings by type, and what has
// changed so far.
class Translation {
 public:
  Translation(Object object, const Versions& versions);

  void Apply(const std::vector<Rule>& rules);
  void Override(const Overrides& overrides);

  // Puts the object together again. `changes` are earlier ones.
  Verdict Finish(std::vector<std::string> changes) &&;

 private:
  void ApplyOne(const Rule& rule);
  void ApplyToFields(const Rule& rule);
  void ApplyToAnalysis(const Rule& rule);
  bool Judge(const Rule& rule, const Json& members);
  void EditMembers(const Rule& rule, Json& members);
  void Note(const Rule& rule, const std::string& place);

  Object object_;
  const Versions versions_;
  Json settings_;
  std::vector<TypedMappings> types_;
  bool has_content_ = false;                           // settings, mappings and aliases
  std::vector<std::string> order_;                     // of the changes, by their reasons
  std::map<std::string, std::set<std::string>> made_;  // reason → places
  std::vector<std::string> overridden_;
  std::string left_out_;
  std::string refused_;
};

}  // namespace muster::metadata
