#pragma once

#include <cstddef>
#include <string_view>

#include "muster/result.h"

namespace muster {

// Text that every database accepts: limited length, valid UTF-8, no NUL. `what` names it in errors.
Status CheckText(std::string_view what, std::string_view text, size_t max_bytes);

// The same, and not empty.
Status CheckName(std::string_view what, std::string_view text, size_t max_bytes);

}  // namespace muster
