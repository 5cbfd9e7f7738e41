#pragma once

#include <memory>

#include "muster/task.h"

namespace muster::task {

// Runs programs, for the resource `muster:exec`:
//   {"Command": ["./load.sh", "users"],   the program, by PATH if it has no slash, and its
//   arguments
//    "Environment": {"MODE": "fast"},     in addition to this process's
//    "Directory": "/srv/load",            where it runs; by default where this process does
//    "Input": {…}}                        what it reads from its standard input, as JSON
// Values of Environment may hold secret references, ${env:NAME} or ${file:PATH}.
//
// The task's result is the JSON that the program prints, of at most 256 KiB; null if it prints
// nothing. What it writes to standard error goes into the log, line by line.
//
// The program finds the call's token in MUSTER_TASK_TOKEN: it is the same when the call is repeated
// because nobody knows what became of it. It leads a process group of its own. On a time-out, or
// when the call is not wanted any more, the group gets SIGTERM and five seconds later SIGKILL. It
// does not outlive this process.
//
// Failures: Exec.NotStarted; Exec.ExitCode.N, Exec.Signal.N, with the end of standard error as the
// cause, or the error that the program itself names by printing {"Error": …, "Cause": …};
// Exec.BadOutput; States.Timeout; States.DataLimitExceeded.
std::unique_ptr<states::TaskExecutor> MakeExecExecutor();

}  // namespace muster::task
