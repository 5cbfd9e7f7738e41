#include "metadata/rule_set.h"

#include <string_view>

#include "core/file.h"
#include "metadata/translation.h"
#include "script/js.h"

namespace muster::metadata {

extern const std::string_view kBuiltInRules;

namespace {

constexpr size_t kMaxRuleBytes = size_t{1} << 20;

// Calls the user's function with the object; a verdict if that decides already.
std::optional<Verdict> Ask(script::JsFunction& script, Object& object) {
  const Json question{
      {"kind", kKinds.NameOf(object.kind)}, {"name", object.name}, {"body", object.body}};
  const auto answer = script.Call({ToJsonText(question)});
  if (!answer) return Verdict{.outcome = Outcome::kRefused, .reason = answer.error().ToString()};
  if (!*answer || **answer == "null") {
    return Verdict{.outcome = Outcome::kLeftOut, .reason = "by the script's decision"};
  }
  auto json = ParseJson(**answer, "the script's answer");
  if (!json || !json->is_object() || !(*json)["body"].is_object()) {
    return Verdict{.outcome = Outcome::kRefused,
                   .reason = "the script returned neither null nor an object with a body"};
  }
  object.body = (*json)["body"];
  return std::nullopt;
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
  }
  Translation translation(std::move(edited), versions);
  translation.Apply(own_);
  translation.Apply(built_in_);
  translation.Override(overrides);
  return std::move(translation).Finish(std::move(changes));
}

}  // namespace muster::metadata
