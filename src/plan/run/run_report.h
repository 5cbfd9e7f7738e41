#pragma once

#include <map>
#include <string>

#include "muster/runs.h"
#include "plan/model/plan.h"
#include "plan/run/run_log.h"

namespace muster::plan {

// What running tasks wait for, by the state they began in.
void SetWaits(RunReport& report, const std::map<std::string, std::string>& waits);

// Removes tasks that have not begun, and ranks without any that have.
void KeepBegun(RunReport& report);

// The state of a run according to the log of its execution. `done` has the results of earlier
// attempts, as in CompileOptions; `ended`: the execution is over.
RunReport MakeReport(const Plan& plan, const ExecutionLog& log, const Json& done, bool ended);

// The extractions that were started remotely and have not ended, as a list of {asked, answered}:
// the parameters and the result of their first state.
Json BegunExtracts(const RunReport& report, const ExecutionLog& log);

}  // namespace muster::plan
