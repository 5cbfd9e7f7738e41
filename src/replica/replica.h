// What other modules may use of replica, beside its public headers.
#pragma once

#include "replica/definitions.h"        // IWYU pragma: export
#include "replica/memory_read_model.h"  // IWYU pragma: export
#include "replica/metered_events.h"     // IWYU pragma: export
#include "replica/operations.h"         // IWYU pragma: export
#include "replica/read_model.h"         // IWYU pragma: export
#include "replica/rebuild.h"            // IWYU pragma: export
#include "replica/replica_file.h"       // IWYU pragma: export
#include "replica/set_records.h"        // IWYU pragma: export
#include "replica/worker.h"             // IWYU pragma: export
