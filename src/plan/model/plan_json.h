#pragma once

#include <string>
#include <vector>

#include "plan/model/plan.h"

namespace muster::plan {

// Everything that a plan says, defaults included and in an order of its own: two files that mean
// the same give the same.
Json Canonical(const Plan& plan);

// The plan that Canonical has written down, but for where it stands in files, its prices, and the
// foreign keys of its tables. kCorrupt: it is none.
Result<Plan> ReadCanonical(const Json& json);

// What a run pins: the SHA-256 of all that, the contents of its scripts included as far as the plan
// has them.
std::string HashOf(const Plan& plan);

// The plan as if its scripts had not been looked at.
Plan WithoutContents(Plan plan);

// How two plans differ.
struct Difference {
  std::string where;  // "ranks.600.transform"
  Json before;        // null: it was not there
  Json after;
};
std::vector<Difference> Compare(const Plan& before, const Plan& after);

// The same of what Canonical gave.
std::vector<Difference> CompareJson(const Json& before, const Json& after);

}  // namespace muster::plan
