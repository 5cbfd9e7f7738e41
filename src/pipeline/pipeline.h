// What other modules may use of pipeline, beside its public headers.
#pragma once

#include "pipeline/file/file_output.h"         // IWYU pragma: export
#include "pipeline/file/file_sink_state.h"     // IWYU pragma: export
#include "pipeline/flow/dead_letter_file.h"    // IWYU pragma: export
#include "pipeline/flow/dead_letter_source.h"  // IWYU pragma: export
#include "pipeline/flow/item_fence.h"          // IWYU pragma: export
#include "pipeline/flow/memory_source.h"       // IWYU pragma: export
#include "pipeline/flow/metered_sink.h"        // IWYU pragma: export
#include "pipeline/flow/progress_json.h"       // IWYU pragma: export
#include "pipeline/flow/verify.h"              // IWYU pragma: export
#include "pipeline/flow/wrappers.h"            // IWYU pragma: export
#include "pipeline/json/escape.h"              // IWYU pragma: export
#include "pipeline/json/json_scan.h"           // IWYU pragma: export
#include "pipeline/postgres/postgres_table.h"  // IWYU pragma: export
#include "pipeline/sqlite/sqlite_table.h"      // IWYU pragma: export
#include "pipeline/sqlite/sqlite_url.h"        // IWYU pragma: export
