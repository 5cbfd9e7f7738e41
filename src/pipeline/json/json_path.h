#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "muster/result.h"

namespace muster::pipeline {

// A path to a field: names separated by dots, as in customer.name. A backslash escapes a dot or a
// backslash in a name.
class JsonPath {
 public:
  // kInvalid: an empty name or a trailing backslash.
  static Result<JsonPath> Parse(std::string_view text);

  const std::vector<std::string>& names() const { return names_; }
  const std::string& text() const { return text_; }

  // The field's value; `object` starts at its brace. None: no such field, or a parent is not an
  // object.
  std::optional<std::string_view> Find(std::string_view object) const;

 private:
  std::string text_;
  std::vector<std::string> names_;
};

}  // namespace muster::pipeline
