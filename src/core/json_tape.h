#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include "muster/json.h"

namespace muster {

// Parses ordinary JSON several times as fast as the parser that reports error positions. None:
// invalid or unusual (duplicate keys, integers beyond 64 bits, deeper than `max_depth`); use the
// other parser then.
std::optional<Json> ReadOrdinaryJson(std::string_view text, size_t max_depth);

}  // namespace muster
