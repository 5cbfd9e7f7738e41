#pragma once

#include <cstddef>

#include "core/json.h"

namespace muster::states {

// The largest input, output or result of a state, as JSON text.
inline constexpr size_t kMaxPayloadBytes = 262'144;

// The size of a value as JSON text; above `limit`, any number greater than that.
size_t JsonBytes(const Json& value, size_t limit);

}  // namespace muster::states
