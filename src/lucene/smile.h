#pragma once

#include <string_view>

#include "base/json.h"

namespace muster::lucene {

// Reads one SMILE value, binary JSON with the header ":)\n", as Elasticsearch and OpenSearch write
// their metadata. Binary values become Json's binary. kCorrupt when it is damaged or nested too
// deeply; kIncompatible for what they never write (big numbers, packed binary).
Result<Json> ParseSmile(std::string_view bytes, std::string_view origin);

}  // namespace muster::lucene
