#pragma once

#include <map>
#include <string>
#include <vector>

#include "muster/states.h"
#include "muster/store.h"
#include "plan/model/plan.h"

namespace muster::plan {

// Times and rows of the tasks of a plan, from its past runs.
struct PastRuns {
  std::vector<std::string> runs;              // their migrations, the newest first
  std::map<std::string, SecondsRange> times;  // by "extract/OBJECT" and "transform/SCRIPT"
  std::map<std::string, int64_t> rows;        // by object, of the newest run that has them
};

// Reads the newest ten runs of a plan's name with a profile of that name. Times count of tasks that
// have succeeded, of scripts only with the DPU that they have now; they are as the plan gives them:
// for JSON staging.
Result<PastRuns> ReadPastRuns(store::Store& store, states::States& states, const Plan& plan,
                              const Profile& profile);

// Puts them in the place of what the plan says.
void ApplyPast(const PastRuns& past, Plan& plan);

}  // namespace muster::plan
