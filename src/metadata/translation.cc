#include "metadata/translation.h"

#include <algorithm>
#include <utility>

#include "metadata/analysis.h"
#include "metadata/lifecycle.h"
#include "metadata/settings.h"

namespace muster::metadata {
namespace {

constexpr size_t kMaxPlaces = 5;

// "string fields become text: title, body and 3 more"
std::string Sentence(const std::string& why, const std::set<std::string>& places) {
  std::string sentence = why;
  size_t shown = 0;
  for (const std::string& place : places) {
    if (place.empty()) continue;
    if (shown == kMaxPlaces) {
      sentence += " and " + std::to_string(places.size() - shown) + " more";
      break;
    }
    sentence += (shown++ == 0 ? ": " : ", ") + place;
  }
  return sentence;
}

// A snapshot has lists of one.
Json AsObject(const Json& value) {
  if (!value.is_array()) return value.is_object() ? value : Json::object();
  Json all = Json::object();
  for (const Json& one : value) {
    if (one.is_object()) all.update(one);
  }
  return all;
}

}  // namespace

std::string Verdict::Detail() const {
  std::string detail = reason;
  for (const std::string& change : changes) detail += (detail.empty() ? "" : "; ") + change;
  return detail;
}

Translation::Translation(Object object, const Versions& versions)
    : object_(std::move(object)), versions_(versions), has_content_(HasContent(object_.kind)) {
  if (!object_.body.is_object()) object_.body = Json::object();
  if (!has_content_) return;
  Json& content = ContentOf(object_.kind, object_.body);
  if (!content.is_object()) content = Json::object();
  settings_ = FlatSettings(content["settings"]);
  types_ = SplitTypes(content["mappings"]);
  content["aliases"] = AsObject(content["aliases"]);
  content.erase("settings");
  content.erase("mappings");
}

void Translation::Apply(const std::vector<Rule>& rules) {
  for (const Rule& rule : rules) {
    if (!left_out_.empty() || !refused_.empty()) return;
    if (rule.AppliesTo(object_, versions_.from, versions_.to)) ApplyOne(rule);
  }
}

void Translation::Note(const Rule& rule, const std::string& place) {
  if (rule.quiet) return;
  if (!made_.contains(rule.why)) order_.push_back(rule.why);
  made_[rule.why].insert(place);
}

// Whether the rule only decides about the object as a whole.
bool Translation::Judge(const Rule& rule, const Json& members) {
  if (!rule.leave_out && !rule.refuse) return false;
  if (rule.Matches(members)) (rule.refuse ? refused_ : left_out_) = rule.why;
  return true;
}

void Translation::EditMembers(const Rule& rule, Json& members) {
  if (Judge(rule, members) || !rule.Matches(members)) return;
  for (const std::string& name : rule.Edit(members)) Note(rule, name);
}

void Translation::ApplyOne(const Rule& rule) {
  if (!has_content_ && rule.scope != RuleScope::kObject) return;
  switch (rule.scope) {
    case RuleScope::kObject:
      return EditMembers(rule, object_.body);
    case RuleScope::kContent:
      return EditMembers(rule, ContentOf(object_.kind, object_.body));
    case RuleScope::kSettings:
      return EditMembers(rule, settings_);
    case RuleScope::kAnalysis:
      if (!rule.Matches(settings_)) return;
      for (const std::string& name : RenameAnalysis(rule.types, settings_)) Note(rule, name);
      return;
    case RuleScope::kMappings:
      for (auto& [type, mappings] : types_) EditMembers(rule, mappings);
      return;
    case RuleScope::kFields:
    case RuleScope::kDynamicTemplates:
      return ApplyToFields(rule);
  }
}

void Translation::ApplyToFields(const Rule& rule) {
  bool any = false;
  for (auto& [type, mappings] : types_) {
    ForEachField(mappings, [&](const Field& field) {
      if (rule.scope == RuleScope::kDynamicTemplates && !field.is_dynamic) return;
      if (!rule.Matches(field.mapping)) return;
      if (rule.refuse || rule.leave_out) {
        (rule.refuse ? refused_ : left_out_) = rule.why + ": " + field.path;
      } else if (!rule.Edit(field.mapping).empty()) {
        any = true;
        Note(rule, field.path);
      }
    });
  }
  if (any) settings_.update(rule.settings);
}

void Translation::Override(const Overrides& overrides) {
  if (!has_content_) return;
  const auto set = [&](const std::string& name, std::optional<int> value) {
    if (!value) return;
    // Templates without the setting leave it to the cluster, or to another template.
    if (object_.kind != Kind::kIndex && !settings_.contains(name)) return;
    const std::string text = std::to_string(*value);
    if (std::as_const(settings_)[name] == text) return;
    settings_[name] = text;
    overridden_.push_back(name + " is set to " + text);
  };
  set("index.number_of_shards", overrides.shards);
  set("index.number_of_replicas", overrides.replicas);
  if (overrides.shards) settings_.erase("index.number_of_routing_shards");
  if (overrides.replicas) settings_.erase("index.auto_expand_replicas");
}

Verdict Translation::Finish(std::vector<std::string> changes) && {
  if (!refused_.empty()) return {.outcome = Outcome::kRefused, .reason = refused_};
  if (!left_out_.empty()) return {.outcome = Outcome::kLeftOut, .reason = left_out_};
  for (const std::string& why : order_) changes.push_back(Sentence(why, made_[why]));
  for (const std::string& one : overridden_) changes.push_back(one);
  if (has_content_) {
    Json& content = ContentOf(object_.kind, object_.body);
    std::vector<std::string> dropped;
    auto mappings = JoinTypes(types_, dropped);
    if (!mappings) {
      return {.outcome = Outcome::kRefused, .reason = mappings.error().ToString()};
    }
    if (types_.size() > 1) changes.emplace_back("its types are joined");
    if (types_.size() == 1 && !types_[0].type.empty() && types_[0].type != "_doc") {
      changes.push_back("type " + types_[0].type + " is removed");
    }
    for (const std::string& name : dropped) {
      changes.push_back(name + " is dropped, on which the types disagree");
    }
    if (!settings_.empty()) content["settings"] = settings_;
    if (!mappings->empty()) content["mappings"] = *std::move(mappings);
    if (content["aliases"].empty()) content.erase("aliases");
    if (object_.kind == Kind::kIndex) {
      EraseIf(content, [](const std::string& name) {
        return name != "settings" && name != "mappings" && name != "aliases";
      });
    }
  }
  if (object_.kind == Kind::kPolicy && versions_.to.engine == Engine::kOpenSearch &&
      versions_.from.engine != Engine::kOpenSearch) {
    return ToIsmPolicy(object_, std::move(changes));
  }
  if (object_.kind == Kind::kPolicy) object_.body.erase("index_patterns");
  return {.outcome = changes.empty() ? Outcome::kOk : Outcome::kChanged,
          .body = std::move(object_.body),
          .changes = std::move(changes)};
}

}  // namespace muster::metadata
