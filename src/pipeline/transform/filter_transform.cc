#include "pipeline/transform/filter_transform.h"

#include <algorithm>

#include "core/json_scan.h"
#include "core/number.h"
#include "core/regex.h"

namespace muster::pipeline {
namespace {

bool Contains(const std::vector<std::string>& list, const std::string& text) {
  return std::find(list.begin(), list.end(), text) != list.end();
}

struct Check {
  FieldCondition condition;
  std::optional<Regex> matches;

  bool Holds(std::string_view object) const {
    const auto value = condition.path.Find(object);
    const bool exists = value && *value != "null";
    if (condition.exists && *condition.exists != exists) return false;
    const std::string text =
        exists ? JsonScalarText(*value).value_or(std::string(*value)) : std::string("null");
    if (!condition.any_of.empty() && !Contains(condition.any_of, text)) return false;
    if (Contains(condition.none_of, text)) return false;
    if (matches && (!exists || !matches->Matches(text))) return false;
    return InBounds(text);
  }

  bool InBounds(const std::string& text) const {
    if (!condition.above && !condition.at_least && !condition.below && !condition.at_most) {
      return true;
    }
    const auto number = ParseNumber<double>(text);
    return number && (!condition.above || *number > *condition.above) &&
           (!condition.at_least || *number >= *condition.at_least) &&
           (!condition.below || *number < *condition.below) &&
           (!condition.at_most || *number <= *condition.at_most);
  }
};

class Filter final : public Transform {
 public:
  explicit Filter(std::vector<Check> checks) : checks_(std::move(checks)) {}

  Result<bool> Apply(Document& document, Arena& /*arena*/,
                     std::vector<Document>& /*more*/) override {
    const std::string_view object = document.body.substr(SkipJsonSpace(document.body, 0));
    return std::all_of(checks_.begin(), checks_.end(),
                       [&](const Check& check) { return check.Holds(object); });
  }

 private:
  const std::vector<Check> checks_;
};

}  // namespace

Result<std::unique_ptr<Transform>> FilterDocuments(const std::vector<FieldCondition>& conditions) {
  std::vector<Check> checks;
  for (const FieldCondition& condition : conditions) {
    Check check{condition, std::nullopt};
    if (!condition.matches.empty()) {
      MUSTER_ASSIGN(check.matches, Regex::Compile(condition.matches));
    }
    checks.push_back(std::move(check));
  }
  return std::make_unique<Filter>(std::move(checks));
}

}  // namespace muster::pipeline
