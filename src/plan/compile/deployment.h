#pragma once

#include <string>
#include <utility>
#include <vector>

#include "plan/compile/compile.h"
#include "plan/model/plan.h"

namespace muster::plan {

// What a deployment of a compiled plan on AWS needs, as files by name:
//
//   definition.asl.json        the state machine that is started
//   rank-NUMBER.asl.json       those that it starts
//   iam-orchestrator.json      what it may do; iam-rank.json: what those may do
//   logging.json               log level ALL, into the plan's log group
//   template.json              all of it for CloudFormation, with status table and topic
//
// kInvalid: a value is needed now that only a run provides.
Result<std::vector<std::pair<std::string, Json>>> MakeDeployment(const Plan& plan,
                                                                 const CompiledPlan& compiled);

}  // namespace muster::plan
