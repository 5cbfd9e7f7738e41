#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "muster/result.h"

namespace muster {

// One member of an object, as it stands in the text.
struct JsonMember {
  std::string_view key;    // between its quotes, escapes and all
  std::string_view value;  // without space around it
};

// Goes through the members of an object, without looking into their values. The text has been
// checked before; whatever it holds, nothing outside of it is read.
class JsonMembers {
 public:
  // `object` begins with its brace.
  explicit JsonMembers(std::string_view object) : text_(object), at_(object.empty() ? 0 : 1) {}

  // None: there are no more.
  std::optional<JsonMember> Next();

 private:
  std::string_view text_;
  size_t at_;
};

// Goes through the elements of an array in the same way.
class JsonElements {
 public:
  // `array` begins with its bracket.
  explicit JsonElements(std::string_view array) : text_(array), at_(array.empty() ? 0 : 1) {}

  std::optional<std::string_view> Next();

 private:
  std::string_view text_;
  size_t at_;
};

// Where the value that begins at `at` ends. At most the text's size.
size_t SkipJsonValue(std::string_view text, size_t at);

// Where something other than space is.
size_t SkipJsonSpace(std::string_view text, size_t at);

// Whether a raw key is this name.
bool JsonKeyIs(std::string_view raw_key, std::string_view name);

// What a JSON string stands for; `raw` is what is between the quotes. Half a surrogate pair becomes
// U+FFFD.
std::string UnescapeJson(std::string_view raw);

// A scalar as text: the content of a string, and numbers and booleans as they are written. None for
// null, objects and arrays.
std::optional<std::string> JsonScalarText(std::string_view value);

}  // namespace muster
