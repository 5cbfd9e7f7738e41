#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "muster/result.h"

namespace muster {

// The position after a row, of a source that reads tables in the order of a key: the key's values
// as text in a JSON array, ["17","b"]. It says "after this row", so that it holds whatever comes
// next.
std::string EncodeKey(const std::vector<std::string_view>& values);

// kInvalid: not such a position, or not of so many values.
Result<std::vector<std::string>> DecodeKey(std::string_view position, size_t columns);

}  // namespace muster
