#pragma once

#include "core/json.h"

namespace muster::states {

// Whether two values are equal as JSON: the order of members does not count, nor how a number is
// written.
bool JsonEqual(const Json& a, const Json& b);

}  // namespace muster::states
