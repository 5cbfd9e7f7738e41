#pragma once

#include <ostream>

#include "muster/result.h"

namespace muster::cli {

// Reports a failure to the user: "muster: what went wrong", and "  hint: what to do next" on a
// second line; as JSON one object {"error":{"code","message","hint"}}. Secrets are redacted, and
// each part is one line.
void ReportError(std::ostream& err, const Error& error, bool json);

}  // namespace muster::cli
