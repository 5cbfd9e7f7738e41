#pragma once

#include "plan/run/run_view.h"

namespace muster::plan {

// Determines the critical path of a run, and marks its tasks.
void FindCriticalPath(RunView& view, WallTime now);

// When a run in progress will end, if the rest takes as long as planned, at the pace so far.
WallTime ExpectedEnd(const RunView& view, const Plan& plan, const LiveRun& live, WallTime now);

}  // namespace muster::plan
