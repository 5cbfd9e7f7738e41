#pragma once

#include <string>

#include "cli/context.h"
#include "muster/result.h"
#include "muster/runs.h"
#include "muster/store.h"

namespace muster::cli {

// What `status`, `history` and `list` print, as tables or JSON. Each returns the exit code.

// Also shown when a run has ended: its status determines the exit code.
Result<int> ReportRun(plan::RunEngine& runs, const plan::RunState& run, store::Store& store,
                      Context& context);

// Reports that there is nothing to resume or, if the plan or its scripts were edited since the run
// was completed, what would run again and the command for it.
void SayCompleted(plan::RunEngine& runs, const std::string& id, const plan::ResumeOptions& now,
                  Context& context);

// Every attempt, event by event.
Result<int> ShowHistory(plan::RunEngine& runs, const plan::RunState& run, Context& context);

Result<int> ListRuns(plan::RunEngine& runs, int limit, Context& context);

}  // namespace muster::cli
