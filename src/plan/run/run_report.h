#pragma once

#include <map>
#include <string>

#include "muster/run_report.h"
#include "plan/compile/state_table.h"
#include "plan/model/plan.h"

namespace muster::plan {

// What running tasks wait for, by the state they began in.
void SetWaits(RunReport& report, const std::map<std::string, std::string>& waits);

// Leaves out the tasks that were not begun, and ranks without any that were.
void KeepBegun(RunReport& report);

// The state of a run by the history of its execution, whose states are `states`. `done` are the
// results of earlier attempts, as in CompileOptions; `ended`: nothing runs any more.
RunReport MakeReport(const Plan& plan, const StateTable& states, const Json& history,
                     const Json& done, bool ended);

// The extractions whose first state has been left and that have not ended, as a list of {asked,
// answered}: its parameters and its result.
Json BegunExtracts(const RunReport& report, const Json& history);

}  // namespace muster::plan
