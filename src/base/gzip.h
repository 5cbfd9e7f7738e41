#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "muster/result.h"

namespace muster {

// Packs into one gzip member, fast rather than small.
std::string Gzip(std::string_view text);

// Unpacks a whole gzip file, of one or more members, in memory.
//
// kCorrupt: it is damaged, ends early, or something else follows it. kInvalid: it unpacks to more
// than `max_bytes`.
Result<std::string> Gunzip(std::string_view packed, size_t max_bytes);

}  // namespace muster
