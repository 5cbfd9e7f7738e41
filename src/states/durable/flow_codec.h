#pragma once

#include "core/json.h"
#include "states/durable/flow_parts.h"
#include "states/durable/flow_record.h"
#include "states/durable/history.h"

namespace muster::states {

// The version of a body's format. Version 0 had no `v`, and numbers instead of names of enums.
inline constexpr RecordFormat kFlowFormat{kKind, 1};

// The body of a record as JSON text. Items that are stored in parts are left out.
std::string BodyToJson(const FlowRecord& record);

// Parses a body into the record. If the body is stored in parts, returns their keys, which are all
// it has. Throws if it is malformed. Members may be in any order, as some stores change it.
Json BodyFromJson(const std::string& body, FlowRecord& record);

// A stored event as JSON text. A payload of more than 8 KiB is dropped and marked as truncated.
std::string EventToStored(const Event& event);
Event EventFromStored(Json&& json);

}  // namespace muster::states
