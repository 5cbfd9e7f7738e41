#pragma once

#include <map>
#include <string>
#include <vector>

#include "plan/compile/arrangement.h"
#include "plan/compile/profile_states.h"
#include "plan/compile/state_table.h"
#include "plan/model/chain.h"
#include "plan/model/plan.h"

namespace muster::plan {

struct Machine {
  Json definition;
  CountRange count;  // of one execution without failures
};

struct RankMachine {
  int64_t rank = 0;
  Machine machine;
};

// A plan in Amazon States Language.
struct CompiledPlan {
  Machine main;
  std::vector<RankMachine> ranks;  // started by the main machine as children; may be empty
  StateTable states;               // of all machines: those for tasks and ranks
};

struct CompileOptions {
  bool inline_ranks = false;  // no child machines, even if the profile has them
  RunIdentity run = {};
  // Results of tasks completed by earlier attempts, by "extract/OBJECT" and "transform/SCRIPT", and
  // of reconciled ranks, by "reconcile/NUMBER".
  std::map<std::string, Json> done = {};
};

// kInvalid: too large for the definition of an execution.
Status CheckSize(const Plan& plan, const std::string& definition);

// Whether a run of the plan, under any name and in this process's working folder, passes CheckSize.
Status CheckRunSize(const Plan& plan, const Profile& profile);

// The states that an arrangement becomes with a profile:
//
//   InitializeMigration → Rank200 → … → CollectResults → CompleteMigration
//
// A rank is a Parallel of its extractions, then one of its transforms, then a reconciliation of
// rows where the profile has one. When a task has failed permanently, people are notified, its
// siblings continue, and the plan's policy decides what follows; every failure leads to
// FailMigration, which sets the status FAILED.
CompiledPlan Compile(const Plan& plan, const Profile& profile, const Arrangement& arrangement,
                     const CompileOptions& options = {});

}  // namespace muster::plan
