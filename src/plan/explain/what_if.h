#pragma once

#include <string>
#include <vector>

#include "plan/model/plan.h"

namespace muster::plan {

// Changes a plan and the staging format as a text says:
//
//   dpu.SCRIPT=20           more or fewer DPU, and the time that follows from it
//   rows.OBJECT=1000000     more or fewer rows, and the times that follow from it
//   parallel=1400,1500      the second rank no longer waits for the first
//   merge=1400,1500         the first rank also does what the second would do
//   staging=parquet         or json
//   pool.flows=4            likewise pool.jobs, pool.dpu
//
// kInvalid says what cannot be changed.
Status ApplyWhatIf(Plan& plan, StagingFormat& format, const std::string& change);

// Whether the second rank could run in parallel with the first, judging by what both load and read:
// nothing in it refers to the first, as far as scripts declare their references.
bool CouldRunBeside(const Plan& plan, const Rank& first, const Rank& second);

}  // namespace muster::plan
