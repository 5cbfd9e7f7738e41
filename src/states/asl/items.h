#pragma once

#include <cstdint>
#include <string>

#include "core/json.h"
#include "muster/result.h"
#include "states/asl/definition.h"

namespace muster::states {

// The items in what an ItemReader's call answered: a list of objects, or the content of a file in
// "Body". kInvalid says what is wrong with it.
Result<Json> ParseItems(const ItemReader& reader, const Json& answer);

// Items gathered into batches: [{"BatchInput":…,"Items":[…]}, …].
Json MakeBatches(const Json& items, const Json& batch_input, int64_t most_items, size_t most_bytes);

}  // namespace muster::states
