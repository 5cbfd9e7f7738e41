// What other modules may use of change.
#pragma once

#include "change/follow.h"  // IWYU pragma: export
