#pragma once

#include <string_view>

namespace muster {

// Whether the text is one JSON value, by the grammar alone: numbers of any size and duplicate keys
// are allowed, which a tree could not hold.
bool IsJson(std::string_view text);

}  // namespace muster
