#pragma once

#include "core/json.h"

namespace muster::pipeline {

// What an index keeps of the documents it was sent, from all to nothing.
enum class KeptSource { kAll, kPruned, kNothing };

// By the mappings of an index, or of one of its types.
KeptSource KeptSourceIn(const Json& mappings);

}  // namespace muster::pipeline
