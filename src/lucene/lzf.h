#pragma once

#include <string>
#include <string_view>

#include "muster/result.h"

namespace muster::lucene {

// Decompresses LZF in the framing of Elasticsearch 1 and 2: blocks that start with "ZV". kCorrupt:
// damaged, or larger than `max_bytes`.
Result<std::string> DecodeLzf(std::string_view in, size_t max_bytes);

}  // namespace muster::lucene
