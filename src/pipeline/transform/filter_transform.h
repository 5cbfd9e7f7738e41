#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "muster/pipeline.h"
#include "pipeline/json/json_path.h"

namespace muster::pipeline {

// A condition on a field; all given parts must hold. Values are compared as text, strings by
// content: 1 is not 1.0. Bounds compare numbers exactly, of any length; anything else is out of
// bounds.
struct FieldCondition {
  JsonPath path;
  std::optional<bool> exists = {};  // null counts as missing
  std::vector<std::string> any_of = {};
  std::vector<std::string> none_of = {};
  std::string matches = {};  // a regular expression to find in the text
  // Numbers, as in JSON.
  std::optional<std::string> above = {};
  std::optional<std::string> at_least = {};
  std::optional<std::string> below = {};
  std::optional<std::string> at_most = {};
};

// Keeps documents that meet every condition. kInvalid: a bad regular expression, or a bound that is
// no number.
Result<std::unique_ptr<Transform>> FilterDocuments(const std::vector<FieldCondition>& conditions);

}  // namespace muster::pipeline
