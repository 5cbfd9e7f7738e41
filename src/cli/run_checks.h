#pragma once

#include <map>
#include <stop_token>
#include <string>

#include "muster/env.h"
#include "muster/plan.h"
#include "muster/runs.h"

namespace muster::cli {

// What tasks would otherwise notice only when it is their turn, perhaps hours later: whether this
// process can run transforms and resolve the secrets of the plan at `path` with this profile or,
// for a profile on AWS, has credentials. Returns the URL that scripts load into.
Result<std::string> CheckProfile(const plan::PlanSummary::Profile& profile, const std::string& path,
                                 const plan::PlanOptions& options,
                                 const std::map<std::string, std::string>& inputs, Env& env,
                                 std::stop_token stop);

// The same for a run that is to be resumed as it is. kInvalid: its plan has problems.
Status CheckResumable(const plan::RunState& run, Env& env, std::stop_token stop);

}  // namespace muster::cli
