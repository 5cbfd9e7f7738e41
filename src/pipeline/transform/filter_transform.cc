#include "pipeline/transform/filter_transform.h"

#include <algorithm>

#include "core/decimal.h"
#include "core/json_scan.h"
#include "core/number.h"
#include "core/regex.h"

namespace muster::pipeline {
namespace {

bool Contains(const std::vector<std::string>& list, const std::string& text) {
  return std::find(list.begin(), list.end(), text) != list.end();
}

// A number without an exponent as a double, if that is as exact as its text: doubles tell 15 digits
// apart, and keep their order.
std::optional<double> ShortNumber(std::string_view text) {
  if (text.size() > 15 || text.find_first_of("eE") != std::string_view::npos) return std::nullopt;
  return ParseNumber<double>(text);
}

template <class Number>
struct Bounds {
  std::optional<Number> above = {};
  std::optional<Number> at_least = {};
  std::optional<Number> below = {};
  std::optional<Number> at_most = {};

  // None: a bound is not a number that `parse` takes.
  template <class Parse>
  static std::optional<Bounds> Of(const FieldCondition& condition, const Parse& parse) {
    Bounds bounds;
    for (const auto& [text, bound] : {std::pair(&condition.above, &bounds.above),
                                      std::pair(&condition.at_least, &bounds.at_least),
                                      std::pair(&condition.below, &bounds.below),
                                      std::pair(&condition.at_most, &bounds.at_most)}) {
      if (!*text) continue;
      *bound = parse(**text);
      if (!*bound) return std::nullopt;
    }
    return bounds;
  }

  bool AreNone() const { return !above && !at_least && !below && !at_most; }

  bool Hold(const Number& number) const {
    return (!above || number > *above) && (!at_least || number >= *at_least) &&
           (!below || number < *below) && (!at_most || number <= *at_most);
  }
};

struct Check {
  FieldCondition condition;
  std::optional<Regex> matches;
  Bounds<Decimal> bounds;
  std::optional<Bounds<double>> short_bounds;  // if all are short

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
    if (bounds.AreNone()) return true;
    if (short_bounds) {
      if (const auto number = ShortNumber(text)) return short_bounds->Hold(*number);
    }
    const auto number = Decimal::Parse(text);
    return number && bounds.Hold(*number);
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
    auto bounds = Bounds<Decimal>::Of(condition, Decimal::Parse);
    if (!bounds) return Error{Code::kInvalid, "a bound must be a number"};
    Check check{.condition = condition,
                .matches = std::nullopt,
                .bounds = *std::move(bounds),
                .short_bounds = Bounds<double>::Of(condition, ShortNumber)};
    if (!condition.matches.empty()) {
      MUSTER_ASSIGN(check.matches, Regex::Compile(condition.matches));
    }
    checks.push_back(std::move(check));
  }
  return std::make_unique<Filter>(std::move(checks));
}

}  // namespace muster::pipeline
