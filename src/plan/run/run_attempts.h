#pragma once

#include "muster/json.h"
#include "muster/runs.h"
#include "muster/states.h"
#include "muster/store.h"

namespace muster::plan {

// The status of a run by its current execution; without one, it is in progress.
RunStatus StatusOf(const std::optional<states::Execution>& execution);

// The name of an attempt's execution. It has the run's incarnation in it, so that no other run has
// the same, whatever that is called.
std::string ExecutionOf(const RunState& run, int64_t attempt);

// The queue of its executions: processes that drive other runs do not touch them.
std::string QueueOf(const RunState& run);

// Adds the attempt that begins now, and makes it the run's current one.
void AddAttempt(RunState& run);

// The attempts in the record of a run. A record of an older version has none: its executions were
// called ID, ID.2, ID.3 and so on.
Json AttemptsJson(const RunState& run);
void ReadAttempts(const Json& body, RunState& run);

// Older versions could give an attempt of one run the name of another run. Takes out of a run's
// attempts those whose executions are of other runs; if that is the current one, it has not begun.
Status DropForeignAttempts(store::Store& store, RunState& run);

}  // namespace muster::plan
