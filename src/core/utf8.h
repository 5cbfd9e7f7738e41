#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace muster {

// The length of the well-formed UTF-8 prefix. Surrogates, overlong forms and code points beyond
// U+10FFFF are ill-formed.
size_t ValidUtf8Prefix(std::string_view text);

// Removes the first character from `text`. An ill-formed byte counts as U+FFFD.
char32_t TakeCodePoint(std::string_view& text);

// A byte's position in a text, as editors count: lines and characters, both from 1.
struct TextPosition {
  size_t line = 1;
  size_t column = 1;

  bool operator==(const TextPosition&) const = default;
};

TextPosition PositionOf(std::string_view text, size_t offset);

// The text, truncated with "…", for quoting in messages.
std::string Shortened(std::string_view text, size_t max_bytes = 200);

// "origin:line:column: reason", the form that editors and terminals make clickable.
std::string AtPosition(std::string_view origin, TextPosition position, std::string_view reason);

}  // namespace muster
