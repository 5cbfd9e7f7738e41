#pragma once

#include <string_view>

#include "core/json.h"

namespace muster::lucene {

// Parses one SMILE value, binary JSON with the header ":)\n", as Elasticsearch and OpenSearch write
// metadata. Binary values become Json's binary. kCorrupt: damaged or nested too deeply;
// kIncompatible for what they never write (big numbers, packed binary).
Result<Json> ParseSmile(std::string_view bytes, std::string_view origin);

}  // namespace muster::lucene
