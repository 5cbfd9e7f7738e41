#pragma once

#include <cstdint>
#include <string>

#include "core/json.h"
#include "muster/result.h"
#include "states/asl/definition.h"

namespace muster::states {

// The items in the answer of an ItemReader's call: a list of objects, or the content of a file in
// "Body". kInvalid: the answer has none.
Result<Json> ParseItems(const ItemReader& reader, const Json& answer);

// Groups items into batches: [{"BatchInput":…,"Items":[…]}, …].
Json MakeBatches(const Json& items, const Json& batch_input, int64_t most_items, size_t most_bytes);

}  // namespace muster::states
