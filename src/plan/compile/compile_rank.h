#pragma once

#include "plan/compile/compile.h"
#include "plan/compile/profile_states.h"

namespace muster::plan {

// The Parameters that hand a run's inputs on: those that are not known before.
Json InputFields(const Plan& plan);

// The state machine of one rank. Its output: {"appflow": {OBJECT: …}, "glue": {SCRIPT: …}} and,
// where the plan goes on after failures, "extractFailed", "transformFailed" and, if rows are
// reconciled, "reconcileFailed".
// Tasks that are done (see CompileOptions) are passed over. Adds its states to `table`.
Machine CompileRank(const Plan& plan, const ProfileStates& profile, const RankWork& work,
                    const std::map<std::string, Json>& done, StateTable& table);

}  // namespace muster::plan
