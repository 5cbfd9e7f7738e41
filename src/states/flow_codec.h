#pragma once

#include "base/json.h"
#include "muster/result.h"
#include "states/flow.h"
#include "states/history.h"

namespace muster::states {

// A flow as JSON, and back: what is given to the latter is used up. Items that are kept elsewhere
// are left out.
Json FlowToJson(const Flow& flow, bool with_items);
Result<Flow> FlowFromJson(Json&& json);

// An event as it is stored. A payload of more than 8 KiB is left out and marked so.
Json EventToStored(const Event& event);
Event EventFromStored(Json&& json);

int64_t ToMillis(WallTime time);
WallTime FromMillis(int64_t millis);

}  // namespace muster::states
