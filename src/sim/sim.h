// What other modules may use of sim, beside its public headers.
#pragma once

#include "sim/run.h"  // IWYU pragma: export
