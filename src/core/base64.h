#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace muster {

// Standard base64 with padding.
std::string EncodeBase64(std::string_view bytes);

// The decoded bytes; none: not valid, padded base64.
std::optional<std::string> DecodeBase64(std::string_view text);

}  // namespace muster
