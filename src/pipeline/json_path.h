#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "muster/result.h"

namespace muster {

// The way to a field: names separated by dots, customer.name. A dot or a backslash in a name is
// written with a backslash before it.
class JsonPath {
 public:
  // kInvalid: an empty name, or a backslash at the end.
  static Result<JsonPath> Parse(std::string_view text);

  const std::vector<std::string>& names() const { return names_; }
  const std::string& text() const { return text_; }

  // The value of the field; `object` begins with its brace. None: there is no such field, or
  // something on the way is no object.
  std::optional<std::string_view> Find(std::string_view object) const;

 private:
  std::string text_;
  std::vector<std::string> names_;
};

}  // namespace muster
