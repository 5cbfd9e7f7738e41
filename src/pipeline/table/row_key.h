#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "muster/result.h"

namespace muster::pipeline {

// The position after a row, for sources that read tables in key order: the key's values as text in
// a JSON array, ["17","b"]. It means "after this row", so it stays valid whatever follows.
std::string EncodeKey(const std::vector<std::string_view>& values);

// kInvalid: not such a position, or the wrong number of values.
Result<std::vector<std::string>> DecodeKey(std::string_view position, size_t columns);

}  // namespace muster::pipeline
