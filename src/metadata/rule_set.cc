#include "metadata/rule_set.h"

#include <string_view>

#include "core/file.h"
#include "core/json_fields.h"
#include "metadata/translation.h"
#include "script/js.h"

namespace muster::metadata {

extern const std::string_view kBuiltInRules;

namespace {

constexpr size_t kMaxRuleBytes = size_t{1} << 20;

Verdict Refuse(std::string reason) {
  return {.outcome = Outcome::kRefused, .reason = std::move(reason)};
}

// Takes the members that a script returned, and keeps those that it left out.
std::optional<Verdict> Take(const Json& answer, Object& object) {
  if (!MemberIn(answer, "body").is_object()) {
    return Refuse("the script returned neither null nor an object with a body");
  }
  for (const auto& [name, value] : answer.items()) {
    if (name == "body") {
      object.body = value;
    } else if (name == "name") {
      if (!value.is_string() || value.get<std::string>().empty()) {
        return Refuse("the script returned a name that is not a text, or is empty");
      }
      object.name = value.get<std::string>();
    } else if (name != "kind" || value != kKinds.NameOf(object.kind)) {
      return Refuse("the script changed '" + name + "': only name and body can be changed");
    }
  }
  return std::nullopt;
}

// Calls the user's function with the object. Returns a verdict if the function decides it.
std::optional<Verdict> Ask(script::JsFunction& script, Object& object) {
  const Json question{
      {"kind", kKinds.NameOf(object.kind)}, {"name", object.name}, {"body", object.body}};
  const auto answer = script.Call({ToJsonText(question)});
  if (!answer) return Refuse(answer.error().ToString());
  if (!*answer) {
    return Refuse(
        "the script returned nothing: it must return the object, or null to leave it out");
  }
  if (**answer == "null") {
    return Verdict{.outcome = Outcome::kLeftOut, .reason = "by the script's decision"};
  }
  const auto json = ParseJson(**answer, "the script's answer");
  if (!json) return Refuse(json.error().ToString());
  return Take(*json, object);
}

}  // namespace

RuleSet::RuleSet() = default;
RuleSet::~RuleSet() = default;
RuleSet::RuleSet(RuleSet&&) noexcept = default;
RuleSet& RuleSet::operator=(RuleSet&&) noexcept = default;

Result<RuleSet> RuleSet::BuiltIn() {
  RuleSet set;
  MUSTER_ASSIGN(set.built_in_, ParseRules(kBuiltInRules, "rules.yaml"));
  return set;
}

Status RuleSet::AddFile(const std::string& path) {
  MUSTER_ASSIGN(const std::string text, ReadFile(path, kMaxRuleBytes));
  if (path.ends_with(".js")) {
    MUSTER_ASSIGN(script_,
                  script::JsFunction::Compile(text, path, {}, nullptr, script::JsNumbers::kExact));
    return {};
  }
  MUSTER_ASSIGN(own_, ParseRules(text, path));
  return {};
}

Verdict RuleSet::Apply(const Object& object, const Versions& versions,
                       const Overrides& overrides) const {
  Object edited = object;
  std::vector<std::string> changes;
  if (script_ != nullptr) {
    if (auto verdict = Ask(*script_, edited)) return *std::move(verdict);
    if (edited.body != object.body) changes.emplace_back("changed by the script");
    if (edited.name != object.name) changes.push_back("renamed to " + edited.name);
  }
  const std::string name = edited.name;
  Translation translation(std::move(edited), versions);
  translation.Apply(own_);
  translation.Apply(built_in_);
  translation.Override(overrides);
  Verdict verdict = std::move(translation).Finish(std::move(changes));
  if (verdict.IsKept()) verdict.name = name;
  return verdict;
}

}  // namespace muster::metadata
