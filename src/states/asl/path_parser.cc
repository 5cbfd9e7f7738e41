#include "states/asl/path_parser.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>

#include "core/utf8.h"
#include "states/asl/json_path_filter.h"

namespace muster::states {
namespace {

using Step = JsonPath::Step;
using FilterPtr = std::shared_ptr<const FilterNode>;

constexpr int kMaxDepth = 32;

constexpr std::array<std::string_view, 15> kOperators = {"==",  "!=", "<=",       ">=",    "=~",
                                                         "<",   ">",  "subsetof", "anyof", "noneof",
                                                         "nin", "in", "contains", "size",  "empty"};

// What ends an unquoted name.
bool EndsName(char c) {
  return std::string_view(".[]()=<>!&|, ~\t\n\r").find(c) != std::string_view::npos;
}

FilterPtr MakeFilter(FilterNode node) {
  return std::make_shared<const FilterNode>(std::move(node));
}

}  // namespace

bool PathParser::Take(std::string_view expected) {
  if (!text_.substr(at_).starts_with(expected)) return false;
  at_ += expected.size();
  return true;
}

void PathParser::SkipSpaces() {
  while (!End() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
}

Error PathParser::Wrong(std::string_view what) const {
  return {Code::kInvalid, "bad JSONPath '" + Shortened(text_) + "': " + std::string(what) +
                              " at character " + std::to_string(at_ + 1)};
}

Result<std::vector<Step>> PathParser::ParseWhole() {
  if (!Take("$")) return Wrong("expected '$'");
  MUSTER_ASSIGN(std::vector<Step> steps, ParseSteps());
  if (!End()) return Wrong("expected '.' or '['");
  return steps;
}

Result<std::vector<Step>> PathParser::ParseSteps() {
  std::vector<Step> steps;
  while (!End()) {
    bool deep = false;
    if (Take("..")) {
      deep = true;
    } else if (Take(".")) {
      if (Peek() == '[') return Wrong("expected a name");
    } else if (Peek() != '[') {
      break;
    }
    MUSTER_ASSIGN(Step step, Peek() == '[' ? ParseBracket() : ParseName());
    step.deep = deep;
    steps.push_back(std::move(step));
  }
  return steps;
}

Result<Step> PathParser::ParseName() {
  if (Take("*")) return Step{.kind = Step::Kind::kWildcard};
  const size_t start = at_;
  while (!End() && !EndsName(text_[at_])) ++at_;
  if (at_ == start) return Wrong("expected a name");
  return Step{.names = {std::string(text_.substr(start, at_ - start))}};
}

Result<std::string> PathParser::ParseQuoted() {
  const char quote = text_[at_++];
  std::string value;
  while (!End() && text_[at_] != quote) {
    // A backslash escapes the quote and itself; before any other character it is literal.
    if (text_[at_] == '\\' && at_ + 1 < text_.size() &&
        (text_[at_ + 1] == '\'' || text_[at_ + 1] == '\\')) {
      ++at_;
    }
    value += text_[at_++];
  }
  if (End()) return Wrong("a quote is not closed");
  ++at_;
  return value;
}

Result<Step> PathParser::ParseBracket() {
  Take("[");
  SkipSpaces();
  Step step;
  if (Take("*")) {
    step.kind = Step::Kind::kWildcard;
  } else if (Take("?")) {
    step.kind = Step::Kind::kFilter;
    MUSTER_ASSIGN(step.filter, ParseFilter());
  } else if (Peek() == '\'' || Peek() == '"') {
    do {
      SkipSpaces();
      if (Peek() != '\'' && Peek() != '"') return Wrong("expected a quoted name");
      MUSTER_ASSIGN(std::string name, ParseQuoted());
      step.names.push_back(std::move(name));
      SkipSpaces();
    } while (Take(","));
  } else {
    MUSTER_ASSIGN(step, ParseNumbers());
  }
  SkipSpaces();
  if (!Take("]")) return Wrong("expected ']'");
  return step;
}

Result<Step> PathParser::ParseNumbers() {
  const auto number = [this]() -> std::optional<int64_t> {
    SkipSpaces();
    int64_t value = 0;
    const char* begin = text_.data() + at_;
    auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value);
    if (error != std::errc()) return {};
    at_ += static_cast<size_t>(end - begin);
    SkipSpaces();
    return value;
  };
  Step step{.kind = Step::Kind::kIndices};
  // "(@.length-1)" is the old syntax for counting from the end.
  const bool from_end = Take("(@.length");
  std::optional<int64_t> first = number();
  if (from_end) {
    if (!first || !Take(")")) return Wrong("expected '(@.length-N)'");
    step.indices.push_back(*first);
    return step;
  }
  if (Take(":")) {
    step.kind = Step::Kind::kSlice;
    step.from = first;
    step.to = number();
    return step;
  }
  if (!first) return Wrong("expected a number, a quoted name, '*' or a filter");
  step.indices.push_back(*first);
  while (Take(",")) {
    std::optional<int64_t> next = number();
    if (!next) return Wrong("expected a number");
    step.indices.push_back(*next);
  }
  return step;
}

Result<FilterPtr> PathParser::ParseFilter() {
  SkipSpaces();
  if (!Take("(")) return Wrong("expected '('");
  MUSTER_ASSIGN(FilterPtr filter, ParseOr());
  SkipSpaces();
  if (!Take(")")) return Wrong("expected ')'");
  return filter;
}

// One node for all parts of "a || b || c": nested nodes would need a stack frame for each.
Result<FilterPtr> PathParser::ParseOr() {
  if (++depth_ > kMaxDepth) return Wrong("nested too deep");
  FilterNode any{.kind = FilterNode::Kind::kOr};
  do {
    MUSTER_ASSIGN(FilterPtr part, ParseAnd());
    any.parts.push_back(std::move(part));
    SkipSpaces();
  } while (Take("||"));
  --depth_;
  return any.parts.size() == 1 ? any.parts.front() : MakeFilter(std::move(any));
}

Result<FilterPtr> PathParser::ParseAnd() {
  FilterNode all{.kind = FilterNode::Kind::kAnd};
  do {
    MUSTER_ASSIGN(FilterPtr part, ParseTerm());
    all.parts.push_back(std::move(part));
    SkipSpaces();
  } while (Take("&&"));
  return all.parts.size() == 1 ? all.parts.front() : MakeFilter(std::move(all));
}

Result<FilterPtr> PathParser::ParseTerm() {
  SkipSpaces();
  if (Peek() == '!' && at_ + 1 < text_.size() && text_[at_ + 1] != '=') {
    ++at_;
    if (++depth_ > kMaxDepth) return Wrong("nested too deep");
    MUSTER_ASSIGN(FilterPtr part, ParseTerm());
    --depth_;
    return MakeFilter({.kind = FilterNode::Kind::kNot, .parts = {part}});
  }
  if (Take("(")) {
    MUSTER_ASSIGN(FilterPtr part, ParseOr());
    SkipSpaces();
    if (!Take(")")) return Wrong("expected ')'");
    return part;
  }
  return ParseComparison();
}

Result<FilterPtr> PathParser::ParseComparison() {
  MUSTER_ASSIGN(FilterPtr left, ParseOperand());
  SkipSpaces();
  for (std::string_view op : kOperators) {
    if (!Take(op)) continue;
    MUSTER_ASSIGN(FilterPtr right, ParseOperand());
    return MakeFilter(
        {.kind = FilterNode::Kind::kCompare, .parts = {left, right}, .op = std::string(op)});
  }
  return MakeFilter({.kind = FilterNode::Kind::kExists, .parts = {left}});
}

Result<FilterPtr> PathParser::ParseOperand() {
  SkipSpaces();
  const char c = Peek();
  if (c == '@' || c == '$') {
    ++at_;
    FilterNode node{.kind = c == '@' ? FilterNode::Kind::kItemPath : FilterNode::Kind::kRootPath};
    if (++depth_ > kMaxDepth) return Wrong("nested too deep");
    MUSTER_ASSIGN(node.steps, ParseSteps());
    --depth_;
    return MakeFilter(std::move(node));
  }
  if (c == '\'' || c == '"') {
    MUSTER_ASSIGN(std::string text, ParseQuoted());
    return MakeFilter({.literal = std::move(text)});
  }
  if (c == '/') {
    const size_t end = text_.find('/', at_ + 1);
    if (end == std::string_view::npos) return Wrong("a regular expression is not closed");
    const std::string expression(text_.substr(at_ + 1, end - at_ - 1));
    const bool ignore_case = text_.substr(end + 1).starts_with("i");
    auto regex =
        Regex::Compile(expression, {.ignore_case = ignore_case, .dot_takes_newline = false});
    if (!regex) return Wrong(regex.error().message);
    at_ = end + (ignore_case ? 2 : 1);
    return MakeFilter({.kind = FilterNode::Kind::kRegex, .regex = *std::move(regex)});
  }
  size_t end = at_;
  if (c == '[') {
    end = text_.find(']', at_);
    if (end == std::string_view::npos) return Wrong("expected ']'");
    ++end;
  } else {
    while (end < text_.size() && !std::isspace(static_cast<unsigned char>(text_[end])) &&
           std::string_view(")&|=<>!,]").find(text_[end]) == std::string_view::npos) {
      ++end;
    }
  }
  std::string literal(text_.substr(at_, end - at_));
  if (c == '[') std::replace(literal.begin(), literal.end(), '\'', '"');
  Json value = Json::parse(literal, nullptr, false);
  // An unquoted word is a string.
  if (value.is_discarded() && c != '[' && !literal.empty()) value = literal;
  if (value.is_discarded()) return Wrong("expected a value");
  at_ = end;
  return MakeFilter({.literal = std::move(value)});
}

}  // namespace muster::states
