#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/json.h"
#include "core/regex.h"
#include "states/asl/json_path.h"

namespace muster::states {

// A condition in a JSONPath: "[?(@.price < 10 && @.name =~ /a.*/i)]".
struct FilterNode {
  enum class Kind { kOr, kAnd, kNot, kExists, kCompare, kLiteral, kItemPath, kRootPath, kRegex };
  Kind kind = Kind::kLiteral;
  std::vector<std::shared_ptr<const FilterNode>> parts = {};  // of "or" and "and", any number
  std::string op = {};                                        // of a comparison
  Json literal = {};
  std::vector<JsonPath::Step> steps = {};  // of a path
  std::optional<Regex> regex = {};
};

// The result of steps from a node: the value of a definite path, or a list for an indefinite one.
// None: no match.
std::optional<Json> FindSteps(const std::vector<JsonPath::Step>& steps, const Json& start,
                              const Json& root);

bool FilterMatches(const FilterNode& filter, const Json& item, const Json& root);

}  // namespace muster::states
