#pragma once

#include <string>
#include <string_view>

#include "muster/result.h"

namespace muster::net {

// The RSA SHA-256 signature of a text, as in JWT's RS256. `key` is a PEM private key. kInvalid: not
// such a key; the message never contains it.
Result<std::string> SignRs256(std::string_view text, const std::string& key);

}  // namespace muster::net
