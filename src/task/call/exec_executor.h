#pragma once

#include <memory>

#include "muster/states.h"

namespace muster::task {

// Runs programs, for the resource `muster:exec`:
//   {"Command": ["./load.sh", "users"],   program and arguments; no slash: found by PATH
//    "Environment": {"MODE": "fast"},     added to this process's
//    "Directory": "/srv/load",            its working directory; by default this process's
//    "Input": {…}}                        its standard input, as JSON
// Values of Environment may hold secret references, ${env:NAME} or ${file:PATH}.
//
// The result is the JSON that the program prints, at most 256 KiB; null if it prints nothing. Its
// standard error is logged line by line.
//
// MUSTER_TASK_TOKEN holds the call's token, which is the same when a call of unknown outcome is
// repeated. The program runs in a process group of its own. On a time-out, or when the result is no
// longer wanted, the group gets SIGTERM and five seconds later SIGKILL. It does not outlive this
// process.
//
// Failures: Exec.NotStarted (no such program); Exec.Unavailable (this machine is out of processes
// or descriptors); Exec.ExitCode.N, Exec.Signal.N, with the end of standard error as the cause, or
// the error that the program names itself by printing {"Error": …, "Cause": …}; Exec.BadOutput;
// States.Timeout; States.DataLimitExceeded.
std::unique_ptr<states::TaskExecutor> MakeExecExecutor();

}  // namespace muster::task
