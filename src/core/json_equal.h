#pragma once

#include "core/json.h"

namespace muster {

// Whether two values are equal as JSON, whatever the order of members and the format of numbers.
bool JsonEqual(const Json& a, const Json& b);

}  // namespace muster
