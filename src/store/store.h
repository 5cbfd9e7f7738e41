// What other modules may use of the store, beside its public headers.
#pragma once

#include "store/backends.h"         // IWYU pragma: export
#include "store/doctor/diagnose.h"  // IWYU pragma: export
#include "store/metered_store.h"    // IWYU pragma: export
#include "store/record_scan.h"      // IWYU pragma: export
#include "store/store_url.h"        // IWYU pragma: export
