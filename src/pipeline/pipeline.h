// What other modules may use of pipeline, beside its public headers.
#pragma once

#include "pipeline/flow/dead_letter_file.h"  // IWYU pragma: export
#include "pipeline/flow/item_fence.h"        // IWYU pragma: export
#include "pipeline/flow/memory_source.h"     // IWYU pragma: export
#include "pipeline/flow/metered_sink.h"      // IWYU pragma: export
#include "pipeline/flow/shards.h"            // IWYU pragma: export
#include "pipeline/flow/wrappers.h"          // IWYU pragma: export
