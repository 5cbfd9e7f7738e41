#pragma once

#include "plan/compile/compile.h"
#include "plan/compile/profile_states.h"

namespace muster::plan {

// Parameters that pass a run's inputs on to a child: those without a known value.
Json InputFields(const Plan& plan);

// The state machine of one rank. Its output: {"appflow": {OBJECT: …}, "glue": {SCRIPT: …}} and, if
// the plan continues after failures, "extractFailed", "transformFailed" and, if rows are
// reconciled, "reconcileFailed". Completed tasks (see CompileOptions) are skipped. Adds its states
// to `table`.
Machine CompileRank(const Plan& plan, const ProfileStates& profile, const RankWork& work,
                    const std::map<std::string, Json>& done, StateTable& table);

}  // namespace muster::plan
