#pragma once

#include <string>

#include "muster/result.h"

namespace muster::serve {

// docs/api/openapi.yaml: openapi.in.yaml with the paths of the table of routes.
const std::string& ApiDocument();

// web/src/api/types.ts: the document's schemas as TypeScript.
Result<std::string> ApiTypes();

}  // namespace muster::serve
