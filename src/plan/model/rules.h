#pragma once

#include "core/yaml.h"
#include "plan/model/fields.h"
#include "plan/model/plan.h"

namespace muster::plan {

// Sorts the ranks, and lets those without `needs` need the previous one.
void OrderRanks(Plan& plan);

// Finds inconsistencies: unknown names, ranks in the wrong order, tables loaded twice or before the
// ones they refer to, pools that are too small.
void CheckRules(const Plan& plan, Problems& problems);

// Finds missing script files, if a profile runs scripts locally.
void CheckFiles(const Plan& plan, Problems& problems);

// Finds plain-text secrets anywhere in a file.
void CheckSecrets(const YamlNode& root, Problems& problems);

}  // namespace muster::plan
