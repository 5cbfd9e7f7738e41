#pragma once

#include <set>
#include <string>
#include <vector>

#include "plan/model/plan.h"

namespace muster::plan {

// What they know the reconciliation of a rank by: "reconcile/NUMBER".
std::string ReconcileKey(int64_t rank);

// Takes tasks out of `done`, the results by key, and with them what was made from theirs: an object
// that is extracted again takes along the scripts that read it, and a script the scripts whose
// foreign keys point to its table; what is done again is reconciled again. Objects that are not
// done count as extracted again. Returns the tasks that were taken out although they were done, in
// the plan's order.
std::vector<std::string> Invalidate(const Plan& plan, const std::set<std::string>& tasks,
                                    Json& done);

// The tasks of a plan that `before`, the one which a run has pinned, has not or that do another
// thing by it: how long they take, how often they are tried and by how many DPU makes no
// difference.
std::set<std::string> ChangedTasks(const Plan& before, const Plan& after,
                                   const std::string& profile);

}  // namespace muster::plan
