#pragma once

#include <string>
#include <string_view>

namespace muster {

// A message without its variable parts, so that failures with the same cause are grouped: numbers,
// ids and quoted text become placeholders. At most 200 bytes.
std::string SignatureOf(std::string_view message);

}  // namespace muster
