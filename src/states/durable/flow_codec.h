#pragma once

#include "core/json.h"
#include "states/durable/flow_parts.h"
#include "states/durable/flow_record.h"
#include "states/durable/history.h"

namespace muster::states {

// The format of a body. Version 0 had no `v`, and numbers for what a flow wants and a call is for.
inline constexpr int64_t kFlowVersion = 1;

// What the body of a record says, in JSON. Items that are kept elsewhere are left out.
std::string BodyToJson(const FlowRecord& record);

// And back, into the record. If the body is in parts, these are all it says: their keys are the
// answer. Throws an exception if it is no body of ours. A store may write members in any order.
Json BodyFromJson(const std::string& body, FlowRecord& record);

// An event as it is stored, in JSON. A payload of more than 8 KiB is left out and marked so.
std::string EventToStored(const Event& event);
Event EventFromStored(Json&& json);

}  // namespace muster::states
