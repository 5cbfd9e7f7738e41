#pragma once

#include <string>
#include <vector>

#include "muster/result.h"

namespace muster {

// Secret references in a text that consists of literal pieces with data between them: two pieces
// around each, which may be empty. Only the pieces may have references. Each is kInvalid with what
// is wrong, to be followed by where.

// Data adds or completes no reference.
Status CheckSecretOrigin(const std::string& text, const std::vector<std::string>& pieces);

// In a URL with a reference, data does not end the part of the URL it is in: `db?host=elsewhere`
// would choose who gets the secret.
Status CheckSecretFillings(const std::string& text, const std::vector<std::string>& pieces);

}  // namespace muster
