#pragma once

#include <string>
#include <string_view>

namespace muster::cli {

// The URL of a sink as that of a source that reads what it has written: without the parameters that
// only say how to write. Any other text is returned as it is.
std::string WrittenUrl(std::string_view sink);

}  // namespace muster::cli
