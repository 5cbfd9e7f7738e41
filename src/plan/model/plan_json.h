#pragma once

#include <string>
#include <vector>

#include "plan/model/plan.h"

namespace muster::plan {

// How values of enums are written: by name; older versions wrote their numbers.
enum class CanonicalForm { kNumbers, kNames };

// Everything that a plan says, defaults included, in a fixed order: two files that mean the same
// give the same.
Json Canonical(const Plan& plan, CanonicalForm form = CanonicalForm::kNames);

// The plan that Canonical wrote, in either form, without positions in files, prices, and the
// foreign keys of its tables. kCorrupt: not such a plan.
Result<Plan> ReadCanonical(const Json& json);

// What a run pins: the SHA-256 of the canonical plan, with the hashes of those scripts that were
// read.
std::string HashOf(const Plan& plan, CanonicalForm form = CanonicalForm::kNames);

// The plan as if its scripts had not been read.
Plan WithoutContents(Plan plan);

// How two plans differ.
std::vector<Difference> Compare(const Plan& before, const Plan& after);

// How two results of Canonical differ.
std::vector<Difference> CompareJson(const Json& before, const Json& after);

}  // namespace muster::plan
