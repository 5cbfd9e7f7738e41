#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace muster {

// The bytes in base64, with the usual alphabet and padding.
std::string EncodeBase64(std::string_view bytes);

// The bytes again; none: it is not such a text, with its padding and nothing else.
std::optional<std::string> DecodeBase64(std::string_view text);

}  // namespace muster
