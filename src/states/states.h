// What other modules may use of states, beside its public headers.
#pragma once

#include "states/durable/flow_record.h"   // IWYU pragma: export
#include "states/durable/read_history.h"  // IWYU pragma: export
#include "states/run/cases.h"             // IWYU pragma: export
#include "states/run/mocks.h"             // IWYU pragma: export
#include "states/run/runner.h"            // IWYU pragma: export
