#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "states/asl/query.h"
#include "states/asl/source.h"
#include "states/run/failure.h"

namespace muster::states {

// The condition of a choice rule: a comparison, And, Or, Not of others, or a JSONata expression.
struct Condition {
  enum class Kind { kCompare, kAnd, kOr, kNot, kJsonata };
  enum class Operand { kString, kNumeric, kTimestamp, kBoolean, kMatches, kIs };
  enum class Order { kEquals, kLess, kGreater, kLessEquals, kGreaterEquals };

  Kind kind = Kind::kCompare;
  std::vector<Condition> parts;

  Query variable;
  Operand operand = Operand::kString;
  Order order = Order::kEquals;
  std::string is;             // "IsPresent", …
  Json literal;               // to compare with
  std::optional<Query> path;  // instead of the literal
  std::optional<Query> jsonata;
  bool constant = false;  // a JSONata condition that is a plain true or false

  Fallible<bool> Holds(const Scope& scope) const;
};

// Sets the comparison operator of a condition by its name ("NumericLessThanPath"). False: there is
// no such operator.
bool SetOperator(std::string_view name, Condition& condition);

// Whether a text matches a pattern in which * stands for any characters and \* for itself.
bool MatchesWildcard(std::string_view pattern, std::string_view text);

}  // namespace muster::states
