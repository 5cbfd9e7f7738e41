// What other modules may use of serve, beside its public headers.
#pragma once

#include "serve/api_document.h"  // IWYU pragma: export
#include "serve/dashboard.h"     // IWYU pragma: export
