#pragma once

#include <string>
#include <string_view>

#include "muster/result.h"

namespace muster::lucene {

// Both write exactly `size` bytes to `to`, or fail with kCorrupt. `dictionary` is the history that
// the data may refer to.
Status InflateRaw(std::string_view in, std::string_view dictionary, char* to, size_t size);
Status DecodeZstd(std::string_view in, std::string_view dictionary, char* to, size_t size);

// Decompresses data of unknown size, at most `max_bytes`.
Result<std::string> InflateAll(std::string_view in, size_t max_bytes);
Result<std::string> DecodeZstdAll(std::string_view in, size_t max_bytes);

}  // namespace muster::lucene
