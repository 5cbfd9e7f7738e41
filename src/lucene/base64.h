#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace muster::lucene {

// Standard base64 with padding; none if it is not base64.
std::optional<std::string> DecodeBase64(std::string_view text);

// URL-safe without padding, as ids are written.
std::string EncodeBase64Url(std::string_view bytes);
void AppendBase64Url(std::string_view bytes, std::string& text);

}  // namespace muster::lucene
