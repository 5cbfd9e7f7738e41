#pragma once

#include <string>
#include <string_view>

#include "muster/result.h"

namespace muster {

// The signature of a text by RSA with SHA-256, as JWT's RS256 has it. `key` is a private key in
// PEM. kInvalid: it is none; the message never holds it.
Result<std::string> SignRs256(std::string_view text, const std::string& key);

}  // namespace muster
