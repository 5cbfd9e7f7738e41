#pragma once

#include "core/yaml.h"
#include "plan/model/fields.h"
#include "plan/model/plan.h"

namespace muster::plan {

// Sorts the ranks and gives those that say nothing of it the one before to need.
void OrderRanks(Plan& plan);

// What is wrong between the parts of a plan: names that nothing has, ranks in the wrong order,
// tables loaded twice or before the one they refer to, pools that are too small.
void CheckRules(const Plan& plan, Problems& problems);

// Scripts whose files are not there, where a profile runs them here.
void CheckFiles(const Plan& plan, Problems& problems);

// Secrets that are written out anywhere in a file.
void CheckSecrets(const YamlNode& root, Problems& problems);

}  // namespace muster::plan
