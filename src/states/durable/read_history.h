#pragma once

#include <string>

#include "core/json.h"
#include "muster/result.h"
#include "muster/store.h"

namespace muster::states {

// The history of an execution and its branches as AWS shows it: a JSON array of events in order of
// time. kNotFound: there is no such execution.
Result<Json> ReadHistory(store::Store& store, const std::string& name);

}  // namespace muster::states
