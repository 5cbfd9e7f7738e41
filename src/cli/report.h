#pragma once

#include <ostream>

#include "muster/result.h"

namespace muster::cli {

// Tells a failure to whoever ran the program: "muster: what went wrong", and "  hint: what to do
// next" on a second line; as JSON one object {"error":{"code","message","hint"}}. Redacted, and
// each part on one line whatever it holds.
void ReportError(std::ostream& err, const Error& error, bool json);

}  // namespace muster::cli
