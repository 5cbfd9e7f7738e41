#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace muster::lucene {

// The usual alphabet with padding; nothing if it is not base64.
std::optional<std::string> DecodeBase64(std::string_view text);

// With - and _ and without padding, as ids are written.
std::string EncodeBase64Url(std::string_view bytes);
void AppendBase64Url(std::string_view bytes, std::string& text);

}  // namespace muster::lucene
