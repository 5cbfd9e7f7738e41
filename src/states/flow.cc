#include "states/flow.h"

#include "base/enum_names.h"

namespace muster {
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

namespace states {

std::optional<FlowStatus> FindFlowStatus(std::string_view name) {
  const auto found = kStatusNames.Find(name);
  return found == FlowStatus::kUnreadable ? std::nullopt : found;
}

}  // namespace states
}  // namespace muster
