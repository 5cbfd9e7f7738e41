#pragma once

#include <cstddef>
#include <string_view>

#include "muster/result.h"

namespace muster::lucene {

// Decodes one LZ4 block, of which Lucene stores only the decompressed size: writes exactly `size`
// bytes to `to` and returns how many of `in` it took. A match may reach back into `dictionary`, as
// if it came right before `to`.
//
// Our own implementation because the length of a compressed block that follows another is known
// only after decoding it.
Result<size_t> DecodeLz4(std::string_view in, std::string_view dictionary, char* to, size_t size);

// Lucene ends blocks with matches that liblz4 rejects unless it believes there is more room.
constexpr size_t kLz4Spare = 64;

// The same for a block of known length, with liblz4, which is faster. Needs kLz4Spare bytes of
// scratch space after `size`.
Status DecodeLz4Block(std::string_view in, std::string_view dictionary, char* to, size_t size);

}  // namespace muster::lucene
