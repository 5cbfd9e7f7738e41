#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "muster/pipeline.h"
#include "pipeline/json_path.h"

namespace muster {

// What a field must be like; all that is given must hold. Values are compared as text, texts by
// their content: 1 is not 1.0. The bounds compare numbers; what is none is outside.
struct FieldCondition {
  JsonPath path;
  std::optional<bool> exists = {};  // null does not
  std::vector<std::string> any_of = {};
  std::vector<std::string> none_of = {};
  std::string matches = {};  // a regular expression that some of the text matches
  std::optional<double> above = {};
  std::optional<double> at_least = {};
  std::optional<double> below = {};
  std::optional<double> at_most = {};
};

// Keeps documents of which every condition is true. kInvalid: no regular expression.
Result<std::unique_ptr<Transform>> FilterDocuments(const std::vector<FieldCondition>& conditions);

}  // namespace muster
