#pragma once

#include <string>

#include "core/json.h"

namespace muster::serve {

// What /api/v1/overview shows, in Prometheus' text format: the state of the stores, whichever
// process works on them. docs/guide/metrics.md lists the names.
std::string StateMetrics(const Json& overview);

// CPU time and memory of this process, by the names that Prometheus' own clients use.
std::string ProcessMetrics();

}  // namespace muster::serve
