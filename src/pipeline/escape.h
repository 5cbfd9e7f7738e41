#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace muster {

// Any bytes as text for names and JSON: valid UTF-8 without control characters. What is neither,
// and `%`, becomes %XX; everything else stays readable.
std::string EscapeBytes(std::string_view bytes);

// The bytes again; none: not such a text.
std::optional<std::string> UnescapeBytes(std::string_view text);

}  // namespace muster
