#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "muster/result.h"

namespace muster {

// One member of an object, verbatim.
struct JsonMember {
  std::string_view key;    // between the quotes, still escaped
  std::string_view value;  // without surrounding space
};

// Iterates over an object's members without looking into their values. The text must have been
// checked; in any case, nothing outside it is read.
class JsonMembers {
 public:
  // `object` starts at its brace.
  explicit JsonMembers(std::string_view object) : text_(object), at_(object.empty() ? 0 : 1) {}

  // None: end of the object.
  std::optional<JsonMember> Next();

 private:
  std::string_view text_;
  size_t at_;
};

// Iterates over an array's elements.
class JsonElements {
 public:
  // `array` starts at its bracket.
  explicit JsonElements(std::string_view array) : text_(array), at_(array.empty() ? 0 : 1) {}

  std::optional<std::string_view> Next();

 private:
  std::string_view text_;
  size_t at_;
};

// The end of the value at `at`; at most the text's size.
size_t SkipJsonValue(std::string_view text, size_t at);

// The position of the next non-space character.
size_t SkipJsonSpace(std::string_view text, size_t at);

// Whether a raw key equals `name`.
bool JsonKeyIs(std::string_view raw_key, std::string_view name);

// Decodes a JSON string; `raw` is the text between the quotes. An unpaired surrogate becomes
// U+FFFD.
std::string UnescapeJson(std::string_view raw);

// A scalar as text: a string's content, numbers and booleans as written. None for null, objects and
// arrays.
std::optional<std::string> JsonScalarText(std::string_view value);

}  // namespace muster
