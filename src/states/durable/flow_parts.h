#pragma once

#include "core/json.h"
#include "states/run/flow.h"

namespace muster::states {

// Members of a stored flow. Reading throws if they are malformed.
Json TaskToJson(const TaskProgress& task);
TaskProgress TaskFromJson(Json json);

// A pending call to cancel.
Json CancelToJson(const TaskProgress& call);
TaskProgress CancelFromJson(Json json);

// `with_items`: the items are stored in the record.
Json ChildrenToJson(const ChildrenProgress& children, bool with_items);
ChildrenProgress ChildrenFromJson(Json json);

Json ResultsToJson(const ResultsProgress& results);
ResultsProgress ResultsFromJson(Json json);

int64_t ToMillis(WallTime time);
WallTime FromMillis(int64_t millis);

}  // namespace muster::states
