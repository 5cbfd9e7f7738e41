// What other modules may use of serve.
#pragma once

#include "serve/api_document.h"  // IWYU pragma: export
#include "serve/dashboard.h"     // IWYU pragma: export
