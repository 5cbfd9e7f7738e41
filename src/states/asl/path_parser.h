#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "muster/result.h"
#include "states/asl/json_path.h"

namespace muster::states {

// Parses one JSONPath, alone or inside a filter.
class PathParser {
 public:
  explicit PathParser(std::string_view text, size_t at = 0) : text_(text), at_(at) {}

  // The whole text is one path from "$".
  Result<std::vector<JsonPath::Step>> ParseWhole();

  // The steps from here to the first character that cannot belong to a path.
  Result<std::vector<JsonPath::Step>> ParseSteps();

  // The "( … )" of a filter, after the "?".
  Result<std::shared_ptr<const FilterNode>> ParseFilter();

  size_t at() const { return at_; }

 private:
  bool End() const { return at_ >= text_.size(); }
  char Peek() const { return End() ? '\0' : text_[at_]; }
  bool Take(std::string_view expected);
  void SkipSpaces();
  Error Wrong(std::string_view what) const;

  Result<JsonPath::Step> ParseName();
  Result<JsonPath::Step> ParseBracket();
  Result<JsonPath::Step> ParseNumbers();
  Result<std::string> ParseQuoted();

  Result<std::shared_ptr<const FilterNode>> ParseOr();
  Result<std::shared_ptr<const FilterNode>> ParseAnd();
  Result<std::shared_ptr<const FilterNode>> ParseTerm();
  Result<std::shared_ptr<const FilterNode>> ParseComparison();
  Result<std::shared_ptr<const FilterNode>> ParseOperand();

  std::string_view text_;
  size_t at_;
  int depth_ = 0;
};

}  // namespace muster::states
