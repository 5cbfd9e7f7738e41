#include "states/asl/json_path_filter.h"

#include <algorithm>
#include <compare>

#include "core/json_equal.h"

namespace muster::states {
namespace {

using Kind = FilterNode::Kind;

// The value of an operand. None: its path matches nothing.
std::optional<Json> ValueOf(const FilterNode& operand, const Json& item, const Json& root) {
  if (operand.kind == Kind::kLiteral) return operand.literal;
  const Json& start = operand.kind == Kind::kRootPath ? root : item;
  return FindSteps(operand.steps, start, root);
}

bool Contains(const Json& list, const Json& value) {
  return list.is_array() && std::any_of(list.begin(), list.end(), [&](const Json& element) {
           return JsonEqual(element, value);
         });
}

bool Ordered(const std::string& op, const Json& left, const Json& right) {
  const bool both =
      (left.is_number() && right.is_number()) || (left.is_string() && right.is_string());
  if (!both) return false;
  const std::partial_ordering order = left <=> right;
  if (op == "<") return std::is_lt(order);
  if (op == "<=") return std::is_lteq(order);
  if (op == ">") return std::is_gt(order);
  return std::is_gteq(order);
}

bool Compare(const FilterNode& node, const Json& item, const Json& root) {
  const FilterNode& right_node = *node.parts[1];
  const std::optional<Json> left = ValueOf(*node.parts[0], item, root);
  if (node.op == "=~") {
    return left && left->is_string() && right_node.regex &&
           right_node.regex->MatchesWhole(left->get_ref<const std::string&>());
  }
  const std::optional<Json> right = ValueOf(right_node, item, root);
  if (node.op == "==") {
    return left && right ? JsonEqual(*left, *right) : left.has_value() == right.has_value();
  }
  if (node.op == "!=") {
    return left && right ? !JsonEqual(*left, *right) : left.has_value() != right.has_value();
  }
  if (!left || !right) return false;
  if (node.op == "in") return Contains(*right, *left);
  if (node.op == "nin") return !Contains(*right, *left);
  if (node.op == "contains") {
    if (left->is_string() && right->is_string()) {
      return left->get_ref<const std::string&>().find(right->get_ref<const std::string&>()) !=
             std::string::npos;
    }
    return Contains(*left, *right);
  }
  const auto in_right = [&](const Json& element) { return Contains(*right, element); };
  if (node.op == "subsetof")
    return left->is_array() && std::all_of(left->begin(), left->end(), in_right);
  if (node.op == "anyof")
    return left->is_array() && std::any_of(left->begin(), left->end(), in_right);
  if (node.op == "noneof")
    return left->is_array() && std::none_of(left->begin(), left->end(), in_right);
  const auto size = [&] {
    return left->is_string() ? left->get_ref<const std::string&>().size() : left->size();
  };
  if (node.op == "size") return right->is_number_integer() && size() == right->get<size_t>();
  if (node.op == "empty") return right->is_boolean() && (size() == 0) == right->get<bool>();
  return Ordered(node.op, *left, *right);
}

}  // namespace

bool FilterMatches(const FilterNode& filter, const Json& item, const Json& root) {
  const auto matches = [&](const auto& part) { return FilterMatches(*part, item, root); };
  switch (filter.kind) {
    case Kind::kOr:
      return std::any_of(filter.parts.begin(), filter.parts.end(), matches);
    case Kind::kAnd:
      return std::all_of(filter.parts.begin(), filter.parts.end(), matches);
    case Kind::kNot:
      return !FilterMatches(*filter.parts[0], item, root);
    case Kind::kExists: {
      const FilterNode& operand = *filter.parts[0];
      if (operand.kind == Kind::kLiteral) return operand.literal == Json(true);
      return ValueOf(operand, item, root).has_value();
    }
    case Kind::kCompare:
      return Compare(filter, item, root);
    default:
      return false;
  }
}

}  // namespace muster::states
