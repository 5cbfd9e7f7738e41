#pragma once

#include <string_view>

#include "base/json.h"

namespace muster::lucene {

// Metadata is read whole, packed and unpacked; more than this is not metadata.
constexpr size_t kMaxMetadataBytes = 512 * 1024 * 1024;

// Reads a blob of a repository's metadata: with or without the envelope of a Lucene header named
// `codec` and a footer, packed with DEFLATE, zstd or LZF or not at all, as JSON or SMILE.
// Binary values are Json's binary, or base64 texts in JSON. kIncompatible for any other content.
Result<Json> ParseMetadata(std::string_view blob, std::string_view codec, std::string_view origin);

}  // namespace muster::lucene
