// What checks read in the stored body of an execution or a branch.
#pragma once

#include <optional>
#include <string>

#include "core/json_fields.h"
#include "states/states.h"

namespace muster::sim {

// The token of the task in progress; empty: none.
inline std::string TokenIn(const Json& flow) { return TextIn(MemberIn(flow, "task"), "token"); }

// None: the body was too large for its record.
inline std::optional<states::ExecutionStatus> StatusIn(const Json& flow) {
  return states::FindFlowStatus(TextIn(flow, "status"));
}

}  // namespace muster::sim
