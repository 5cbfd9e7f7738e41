// What other modules may use of lucene, beside its public headers.
#pragma once

#include "lucene/base64.h"        // IWYU pragma: export
#include "lucene/repository.h"    // IWYU pragma: export
#include "lucene/shard_reader.h"  // IWYU pragma: export
