#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include "muster/json.h"

namespace muster {

// Reads ordinary JSON several times as fast as a parser that knows where a mistake is. Nothing: it
// is wrong, or out of the ordinary (a key twice in an object, an integer beyond 64 bits, deeper
// than `max_depth`), and another parser has to say.
std::optional<Json> ReadOrdinaryJson(std::string_view text, size_t max_depth);

}  // namespace muster
