#pragma once

#include <string>
#include <string_view>

namespace muster {

// The bytes in base64, with the usual alphabet and padding.
std::string EncodeBase64(std::string_view bytes);

}  // namespace muster
