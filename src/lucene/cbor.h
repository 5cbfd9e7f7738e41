#pragma once

#include <string_view>

#include "base/json.h"
#include "muster/result.h"

namespace muster::lucene {

// Reads one CBOR value, as far as Elasticsearch writes it: keys are texts, tags are passed over.
Result<Json> ParseCbor(std::string_view bytes, std::string_view origin);

// Whether bytes are a CBOR map: nothing else that metadata can be begins so.
bool LooksLikeCbor(std::string_view bytes);

}  // namespace muster::lucene
