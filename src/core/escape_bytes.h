#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace muster {

// Any bytes as readable text for names and JSON. Invalid UTF-8, control characters and `%` become
// %XX.
std::string EscapeBytes(std::string_view bytes);

// The original bytes; none: not such a text.
std::optional<std::string> UnescapeBytes(std::string_view text);

}  // namespace muster
