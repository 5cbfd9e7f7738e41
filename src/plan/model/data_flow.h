#pragma once

#include <set>
#include <string>
#include <vector>

#include "plan/model/plan.h"

namespace muster::plan {

// The key of a rank's reconciliation in the results: "reconcile/NUMBER".
std::string ReconcileKey(int64_t rank);

// Removes tasks from `done` (results by key), together with everything derived from them:
// re-extracting an object invalidates the scripts that read it, and a script those whose foreign
// keys point to its table; their ranks are reconciled again. Objects that are not done count as
// re-extracted. Returns the removed tasks, in the plan's order.
std::vector<std::string> Invalidate(const Plan& plan, const std::set<std::string>& tasks,
                                    Json& done);

// The tasks that are new in `after`, or do something else than in `before`, the plan that the run
// has pinned. Timeouts, retries and DPU do not count as changes.
std::set<std::string> ChangedTasks(const Plan& before, const Plan& after,
                                   const std::string& profile);

}  // namespace muster::plan
