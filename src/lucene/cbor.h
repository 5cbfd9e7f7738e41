#pragma once

#include <string_view>

#include "core/json.h"
#include "muster/result.h"

namespace muster::lucene {

// Parses one CBOR value, as far as Elasticsearch uses it: keys are text, tags are skipped.
Result<Json> ParseCbor(std::string_view bytes, std::string_view origin);

// Whether bytes are a CBOR map: no other metadata format starts like that.
bool LooksLikeCbor(std::string_view bytes);

}  // namespace muster::lucene
