// What other modules may use of work, beside its public headers.
#pragma once

#include "work/metered_observer.h"  // IWYU pragma: export
#include "work/records.h"           // IWYU pragma: export
#include "work/redrive.h"           // IWYU pragma: export
#include "work/run_summary.h"       // IWYU pragma: export
#include "work/whole_run.h"         // IWYU pragma: export
#include "work/worker.h"            // IWYU pragma: export
