#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "muster/result.h"

namespace muster {

// Compresses into one gzip member, favouring speed over size.
std::string Gzip(std::string_view text);

// Decompresses a whole gzip file, of one or more members, in memory.
//
// kCorrupt: damaged, truncated, or followed by garbage. kInvalid: decompresses to more than
// `max_bytes`.
Result<std::string> Gunzip(std::string_view packed, size_t max_bytes);

}  // namespace muster
