#pragma once

#include <string_view>

#include "core/json.h"

namespace muster::lucene {

// Metadata is read whole, compressed and decompressed; anything larger is not metadata.
constexpr size_t kMaxMetadataBytes = 512 * 1024 * 1024;

// Parses a metadata blob of a repository: with or without the envelope of a Lucene header named
// `codec` and a footer, compressed with DEFLATE, zstd, LZF or not at all, as JSON or SMILE. Binary
// values are Json's binary, or base64 text in JSON. kIncompatible for any other content.
Result<Json> ParseMetadata(std::string_view blob, std::string_view codec, std::string_view origin);

}  // namespace muster::lucene
