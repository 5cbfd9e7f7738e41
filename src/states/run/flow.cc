#include "states/run/flow.h"

#include "core/enum_names.h"

namespace muster::states {
namespace {

constexpr EnumNames<ExecutionStatus, 6> kStatusNames{{{
    {ExecutionStatus::kRunning, "RUNNING"},
    {ExecutionStatus::kSucceeded, "SUCCEEDED"},
    {ExecutionStatus::kFailed, "FAILED"},
    {ExecutionStatus::kTimedOut, "TIMED_OUT"},
    {ExecutionStatus::kAborted, "ABORTED"},
    {ExecutionStatus::kUnreadable, "UNREADABLE"},
}}};

}  // namespace

std::string_view NameOf(ExecutionStatus status) { return kStatusNames.NameOf(status); }

std::optional<FlowStatus> FindFlowStatus(std::string_view name) {
  const auto found = kStatusNames.Find(name);
  return found == FlowStatus::kUnreadable ? std::nullopt : found;
}

}  // namespace muster::states
