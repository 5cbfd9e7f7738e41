#pragma once

#include <map>
#include <string>
#include <vector>

#include "muster/states.h"
#include "muster/store.h"
#include "plan/model/plan.h"

namespace muster::plan {

// Times and rows of a plan's tasks in past runs.
struct PastRuns {
  std::vector<std::string> runs;              // their migration ids, newest first
  std::map<std::string, SecondsRange> times;  // by "extract/OBJECT" and "transform/SCRIPT"
  std::map<std::string, int64_t> rows;        // by object, from the newest run that has them
};

// Reads the newest ten runs of a plan's name with a profile of that name. Only succeeded tasks
// count, and scripts only if they had the DPU that they have now. Times are converted to those of
// JSON staging, as in the plan.
Result<PastRuns> ReadPastRuns(store::Store& store, states::States& states, const Plan& plan,
                              const Profile& profile);

// Replaces the plan's own estimates.
void ApplyPast(const PastRuns& past, Plan& plan);

}  // namespace muster::plan
