#pragma once

#include <string>

#include "core/enum_names.h"

namespace muster {

// The status of a migration, in its status table and in everything that reports it.
enum class RunStatus {
  kInProgress,
  kCompleted,
  kFailed,
  kCancelled,
  kUnreadable,  // in lists only: the record is damaged, or a newer version wrote it
};

inline constexpr EnumNames<RunStatus, 5> kRunStatusNames{{{
    {RunStatus::kInProgress, "IN_PROGRESS"},
    {RunStatus::kCompleted, "COMPLETED"},
    {RunStatus::kFailed, "FAILED"},
    {RunStatus::kCancelled, "CANCELLED"},
    {RunStatus::kUnreadable, "UNREADABLE"},
}}};

inline std::string NameOf(RunStatus status) { return std::string(kRunStatusNames.NameOf(status)); }

}  // namespace muster
