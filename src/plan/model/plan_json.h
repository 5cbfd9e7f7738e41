#pragma once

#include <string>
#include <vector>

#include "plan/model/plan.h"

namespace muster::plan {

// How enum values are written: by name; older versions wrote numbers.
enum class CanonicalForm { kNumbers, kNames };

// The whole plan as JSON, with defaults, in a fixed order: equivalent files give the same text.
Json Canonical(const Plan& plan, CanonicalForm form = CanonicalForm::kNames);

// Reads what Canonical wrote, in either form. Positions in files, prices and foreign keys are not
// part of it. kCorrupt: not such a plan.
Result<Plan> ReadCanonical(const Json& json);

// What a run pins: the SHA-256 of the canonical plan, including the hashes of the scripts that were
// read.
std::string HashOf(const Plan& plan, CanonicalForm form = CanonicalForm::kNames);

// The plan as if its scripts had not been read.
Plan WithoutContents(Plan plan);

// The differences between two plans.
std::vector<Difference> Compare(const Plan& before, const Plan& after);

// The differences between two results of Canonical.
std::vector<Difference> CompareJson(const Json& before, const Json& after);

}  // namespace muster::plan
