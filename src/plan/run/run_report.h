#pragma once

#include <map>
#include <string>

#include "muster/runs.h"
#include "plan/model/plan.h"
#include "plan/run/run_log.h"

namespace muster::plan {

// What running tasks wait for, by the state they began in.
void SetWaits(RunReport& report, const std::map<std::string, std::string>& waits);

// Leaves out the tasks that were not begun, and ranks without any that were.
void KeepBegun(RunReport& report);

// The state of a run by the log of its execution. `done` are the results of earlier attempts, as in
// CompileOptions; `ended`: nothing runs any more.
RunReport MakeReport(const Plan& plan, const ExecutionLog& log, const Json& done, bool ended);

// The extractions whose first state has been left and that have not ended, as a list of {asked,
// answered}: its parameters and its result.
Json BegunExtracts(const RunReport& report, const ExecutionLog& log);

}  // namespace muster::plan
