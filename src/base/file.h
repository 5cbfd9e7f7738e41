#pragma once

#include <cstddef>
#include <string>

#include "muster/result.h"

namespace muster {

// The whole content of a file of at most `max_bytes`. kInvalid, with the path and the reason, when
// there is no such file, it cannot be read, or it is larger.
Result<std::string> ReadFile(const std::string& path, size_t max_bytes);

}  // namespace muster
