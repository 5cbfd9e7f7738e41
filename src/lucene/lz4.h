#pragma once

#include <cstddef>
#include <string_view>

#include "muster/result.h"

namespace muster::lucene {

// Decodes one LZ4 block, of which Lucene stores only what it unpacks to: writes exactly `size`
// bytes to `to` and returns how many of `in` that took. A match may reach back into `dictionary`,
// as if it stood right before `to`.
//
// Written here because the length of a packed block that follows another is known only when it is
// decoded.
Result<size_t> DecodeLz4(std::string_view in, std::string_view dictionary, char* to, size_t size);

// Lucene ends blocks with matches that liblz4 refuses, unless it believes that there is more room.
constexpr size_t kLz4Spare = 64;

// The same for a block of known length, by liblz4, which is faster. There must be room for
// kLz4Spare bytes behind `size`: they are left as anything.
Status DecodeLz4Block(std::string_view in, std::string_view dictionary, char* to, size_t size);

}  // namespace muster::lucene
