#pragma once

#include "muster/json.h"
#include "muster/runs.h"
#include "muster/states.h"
#include "muster/store.h"

namespace muster::plan {

// The status of a run, by its current execution; in progress without one.
RunStatus StatusOf(const std::optional<states::Execution>& execution);

// The name of an attempt's execution. It contains the run's incarnation, so that it is unique.
std::string ExecutionOf(const RunState& run, int64_t attempt);

// The queue of a run's executions: processes that drive other runs do not touch it.
std::string QueueOf(const RunState& run);

// Adds an attempt, and makes it the current one.
void AddAttempt(RunState& run);

// The attempts in a run's record. A record of an older version has none: its executions were called
// ID, ID.2, ID.3 and so on.
Json AttemptsJson(const RunState& run);
void ReadAttempts(const Json* attempts, RunState& run);  // null: an older version

// Older versions could give an attempt of one run the name of another run. Removes attempts whose
// executions belong to other runs; if the current one is among them, it has not begun.
Status DropForeignAttempts(store::Store& store, RunState& run);

}  // namespace muster::plan
