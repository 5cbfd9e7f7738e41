#pragma once

#include "muster/result.h"

namespace muster::cli {

// The program's exit codes; documented in --help and the guide, and never renumbered.
enum ExitCode : int {
  kDone = 0,
  kFailed = 1,       // an error, or a failed check of data, a store or a run
  kUsage = 2,        // invalid input: an option, a file, a plan or a definition
  kNothingToDo = 3,  // or: changes are pending
  kDoneWithRejects = 4,
  kStoreUnreachable = 5,
  kRetry = 75,         // safe to rerun unchanged; EX_TEMPFAIL of sysexits.h
  kInterrupted = 130,  // 128 + SIGINT
};

constexpr ExitCode ExitCodeFor(Code code) {
  switch (code) {
    case Code::kInvalid:
      return kUsage;
    case Code::kUnavailable:
    case Code::kPermission:
    case Code::kReadOnly:
      return kStoreUnreachable;
    case Code::kFull:
    case Code::kUnknownOutcome:
      return kRetry;
    case Code::kCancelled:
      return kInterrupted;
    default:
      return kFailed;
  }
}

}  // namespace muster::cli
