// What other modules may use of events, beside its public headers.
#pragma once

#include "events/backends.h"     // IWYU pragma: export
#include "events/event_json.h"   // IWYU pragma: export
#include "events/event_rules.h"  // IWYU pragma: export
