#pragma once

#include "plan/run/run_view.h"

namespace muster::plan {

// Lists the critical path of a run, and marks its tasks.
void FindCriticalPath(RunView& view, WallTime now);

// When a run in progress will end: what is left takes as long as the plan expects, at the
// pace of what has been done.
WallTime ExpectedEnd(const RunView& view, const Plan& plan, const LiveRun& live, WallTime now);

}  // namespace muster::plan
