#pragma once

#include <string>

namespace muster {

// The status of a run of a plan, in the migration's status table and in everything that reports it.
enum class RunStatus {
  kInProgress,
  kCompleted,
  kFailed,
  kCancelled,
  kUnreadable,  // in lists only: the record is damaged, or a newer version wrote it
};

// "IN_PROGRESS", "COMPLETED", "FAILED", "CANCELLED", "UNREADABLE".
std::string NameOf(RunStatus status);

}  // namespace muster
