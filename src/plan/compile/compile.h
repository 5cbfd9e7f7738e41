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
  CountRange count;  // of one execution in which nothing fails
};

struct RankMachine {
  int64_t rank = 0;
  Machine machine;
};

// A plan in Amazon States Language.
struct CompiledPlan {
  Machine main;
  std::vector<RankMachine> ranks;  // those that the main one starts, where ranks run as children
  StateTable states;               // of all machines; others are not tasks
};

struct CompileOptions {
  bool inline_ranks = false;  // no children, also where the profile would have them
  RunIdentity run = {};       // that it is for
  // Results of tasks that are done already, by "extract/OBJECT" and "transform/SCRIPT", and of
  // ranks that were reconciled, by "reconcile/NUMBER".
  std::map<std::string, Json> done = {};
};

// The states that an arrangement becomes with a profile:
//
//   InitializeMigration → Rank200 → … → CollectResults → CompleteMigration
//
// A rank is a Parallel of its extractions, then one of its transforms, then rows are reconciled
// where the profile can tell. A task that fails for good
// is told about, its siblings go on, and the plan's policy decides what follows; every way that
// fails passes FailMigration, which makes the status FAILED.
CompiledPlan Compile(const Plan& plan, const Profile& profile, const Arrangement& arrangement,
                     const CompileOptions& options = {});

}  // namespace muster::plan
