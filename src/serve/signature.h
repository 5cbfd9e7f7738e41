#pragma once

#include <string>
#include <string_view>

namespace muster::serve {

// A message without what differs from case to case, so that failures with one cause come together:
// numbers, ids, and what stands in quotes are replaced by signs. At most 200 bytes.
std::string SignatureOf(std::string_view message);

}  // namespace muster::serve
