#pragma once

#include "core/enum_names.h"
#include "muster/run_status.h"

namespace muster {

inline constexpr EnumNames<RunStatus, 5> kRunStatusNames{{{
    {RunStatus::kInProgress, "IN_PROGRESS"},
    {RunStatus::kCompleted, "COMPLETED"},
    {RunStatus::kFailed, "FAILED"},
    {RunStatus::kCancelled, "CANCELLED"},
    {RunStatus::kUnreadable, "UNREADABLE"},
}}};

}  // namespace muster
