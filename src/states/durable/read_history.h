#pragma once

#include <string>
#include <vector>

#include "core/json.h"
#include "muster/result.h"
#include "muster/store.h"
#include "states/durable/history.h"

namespace muster::states {

// The history of an execution and its branches, in order of time and numbered in that order.
// kNotFound: there is no such execution.
Result<std::vector<Event>> ReadEvents(store::Store& store, const std::string& name);

// The same as AWS shows it: a JSON array.
Result<Json> ReadHistory(store::Store& store, const std::string& name);

}  // namespace muster::states
