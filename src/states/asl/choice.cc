#include "states/asl/choice.h"

#include <array>

#include "core/timestamp.h"

namespace muster::states {
namespace {

using Operand = Condition::Operand;
using Order = Condition::Order;

// Longer names first, so that no name matches the prefix of another.
constexpr std::array<std::pair<std::string_view, Order>, 5> kOrders = {
    {{"LessThanEquals", Order::kLessEquals},
     {"GreaterThanEquals", Order::kGreaterEquals},
     {"LessThan", Order::kLess},
     {"GreaterThan", Order::kGreater},
     {"Equals", Order::kEquals}}};

constexpr std::array<std::pair<std::string_view, Operand>, 3> kOperands = {
    {{"String", Operand::kString},
     {"Numeric", Operand::kNumeric},
     {"Timestamp", Operand::kTimestamp}}};

constexpr std::array<std::string_view, 6> kIsOperators = {"IsNull",   "IsPresent", "IsNumeric",
                                                          "IsString", "IsBoolean", "IsTimestamp"};

template <class T>
bool InOrder(Order order, const T& left, const T& right) {
  switch (order) {
    case Order::kEquals:
      return left == right;
    case Order::kLess:
      return left < right;
    case Order::kGreater:
      return left > right;
    case Order::kLessEquals:
      return left <= right;
    case Order::kGreaterEquals:
      return left >= right;
  }
  return false;
}

bool Is(std::string_view what, const Json& value) {
  if (what == "IsNull") return value.is_null();
  if (what == "IsNumeric") return value.is_number();
  if (what == "IsString") return value.is_string();
  if (what == "IsBoolean") return value.is_boolean();
  if (what == "IsTimestamp") {
    return value.is_string() && ParseTimestamp(value.get_ref<const std::string&>()).has_value();
  }
  return true;
}

// A value of another type than the operator's is never equal, less or greater.
bool Compare(Operand operand, Order order, const Json& left, const Json& right) {
  switch (operand) {
    case Operand::kString:
      return left.is_string() && right.is_string() &&
             InOrder(order, left.get_ref<const std::string&>(),
                     right.get_ref<const std::string&>());
    case Operand::kNumeric:
      return left.is_number() && right.is_number() && InOrder(order, left, right);
    case Operand::kTimestamp: {
      if (!left.is_string() || !right.is_string()) return false;
      const auto a = ParseTimestamp(left.get_ref<const std::string&>());
      const auto b = ParseTimestamp(right.get_ref<const std::string&>());
      return a && b && InOrder(order, *a, *b);
    }
    case Operand::kBoolean:
      return left.is_boolean() && right.is_boolean() && left == right;
    case Operand::kMatches:
      return left.is_string() && right.is_string() &&
             MatchesWildcard(right.get_ref<const std::string&>(),
                             left.get_ref<const std::string&>());
    case Operand::kIs:
      return false;
  }
  return false;
}

Failure InvalidPath(const Query& query) {
  return {kRuntime, "Invalid path '" + query.text +
                        "': The choice state's condition path references an invalid value."};
}

Fallible<bool> HoldsJsonata(const Condition& condition, const Scope& scope) {
  if (!condition.jsonata) return condition.constant;
  STATES_ASSIGN(const Json value, condition.jsonata->Evaluate(scope, "Condition"));
  if (value.is_boolean()) return value.get<bool>();
  return Unexpected(
      Failure{.error = kQueryError,
              .cause = "The JSONata expression '" + condition.jsonata->text +
                       "' specified for the field 'Condition' returned an unexpected result type. "
                       "Expected 'boolean', but was '" +
                       std::string(JsonataType(value)) + "' for value: " + ToJsonText(value),
              .location = "Condition"});
}

}  // namespace

bool SetOperator(std::string_view name, Condition& condition) {
  if (name == "StringMatches") {
    condition.operand = Operand::kMatches;
    return true;
  }
  for (std::string_view is : kIsOperators) {
    if (name != is) continue;
    condition.operand = Operand::kIs;
    condition.is = std::string(is);
    return true;
  }
  if (name.ends_with("Path")) name.remove_suffix(4);
  if (name == "BooleanEquals") {
    condition.operand = Operand::kBoolean;
    condition.order = Order::kEquals;
    return true;
  }
  for (const auto& [prefix, operand] : kOperands) {
    if (!name.starts_with(prefix)) continue;
    for (const auto& [suffix, order] : kOrders) {
      if (name.substr(prefix.size()) != suffix) continue;
      condition.operand = operand;
      condition.order = order;
      return true;
    }
  }
  return false;
}

bool MatchesWildcard(std::string_view pattern, std::string_view text) {
  // Backtracks to the last star only: it may have to match more characters.
  size_t p = 0;
  size_t t = 0;
  size_t star = std::string_view::npos;
  size_t star_text = 0;
  while (t < text.size()) {
    const bool escaped = p + 1 < pattern.size() && pattern[p] == '\\' &&
                         (pattern[p + 1] == '*' || pattern[p + 1] == '\\');
    if (p < pattern.size() && !escaped && pattern[p] == '*') {
      star = p++;
      star_text = t;
    } else if (p < pattern.size() && pattern[escaped ? p + 1 : p] == text[t]) {
      p += escaped ? 2 : 1;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++star_text;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

Fallible<bool> Condition::Holds(const Scope& scope) const {
  switch (kind) {
    case Kind::kAnd:
      for (const Condition& part : parts) {
        STATES_ASSIGN(const bool holds, part.Holds(scope));
        if (!holds) return false;
      }
      return true;
    case Kind::kOr:
      for (const Condition& part : parts) {
        STATES_ASSIGN(const bool holds, part.Holds(scope));
        if (holds) return true;
      }
      return false;
    case Kind::kNot: {
      STATES_ASSIGN(const bool holds, parts.front().Holds(scope));
      return !holds;
    }
    case Kind::kJsonata:
      return HoldsJsonata(*this, scope);
    case Kind::kCompare:
      break;
  }
  Json found_list;
  const Json* value = variable.FindNode(scope);
  if (value == nullptr && !variable.path.definite()) {
    if (auto found = variable.Find(scope)) {
      found_list = *std::move(found);
      value = &found_list;
    }
  }
  if (is == "IsPresent") return (value != nullptr) == literal.get<bool>();
  if (value == nullptr) return Unexpected(InvalidPath(variable));
  if (operand == Operand::kIs) return Is(is, *value) == literal.get<bool>();
  if (!path) return Compare(operand, order, *value, literal);
  const Json* other = path->FindNode(scope);
  if (other == nullptr) return Unexpected(InvalidPath(*path));
  return Compare(operand, order, *value, *other);
}

}  // namespace muster::states
