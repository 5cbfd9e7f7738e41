#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace muster {

// How many bytes from the start are well-formed UTF-8: all of them, if the text is. Surrogates,
// overlong forms and code points beyond U+10FFFF are ill-formed.
size_t ValidUtf8Prefix(std::string_view text);

// Takes the first character off `text`. A byte that is not UTF-8 counts as U+FFFD.
char32_t TakeCodePoint(std::string_view& text);

// Where a byte stands in a text, as editors count: lines and characters, both from 1.
struct TextPosition {
  size_t line = 1;
  size_t column = 1;

  bool operator==(const TextPosition&) const = default;
};

TextPosition PositionOf(std::string_view text, size_t offset);

// The text, or its beginning and "…", for messages that quote what may be of any length.
std::string Shortened(std::string_view text, size_t max_bytes = 200);

// "origin:line:column: reason", the form that editors and terminals make clickable.
std::string AtPosition(std::string_view origin, TextPosition position, std::string_view reason);

}  // namespace muster
