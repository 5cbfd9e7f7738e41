#pragma once

#include <map>
#include <set>
#include <string>

#include "muster/store.h"
#include "plan/compile/profile_states.h"
#include "plan/run/runs.h"

namespace muster::plan {

// Fills in defaults. kInvalid lists all missing, unknown and unusable inputs.
Status CompleteInputs(const Plan& plan, std::map<std::string, std::string>& inputs);

// The run, as its states see it.
RunIdentity IdentityOf(const RunState& run);

// The body of a run's record: the run, its plan, how to mark it as cancelled, and the results of
// tasks that earlier attempts have completed, as in CompileOptions.
std::string RunBody(const RunState& run, const Plan& plan, const Json& done);
Result<RunState> ReadRunBody(const store::Record& record);
Json DoneOf(const store::Record& record);

// The state machine that sets the migration's status to CANCELLED and stops what continues
// remotely; null: none. Its input has BegunExtracts beside the run's own.
inline constexpr const char* kBegunInput = "muster:begun";
Json CancelMachineOf(const store::Record& record);

// The plan in a record, as ReadCanonical returns it; none: it was too large.
Result<std::optional<Plan>> PinnedPlan(const store::Record& record);

// Whether a run was started with exactly this plan, scripts included. Runs of versions that did not
// hash scripts are compared without them.
bool IsPinned(const store::Record& record, const Plan& plan);

// How a plan differs from the one in a record.
std::string DescribeChanges(const store::Record& record, const Plan& plan);

// Adds the tasks that have succeeded in an execution, according to its log. Skips those that the
// plan lacks or has in another rank.
void AddDone(const Plan& plan, const ExecutionLog& log, Json& done);

// The tasks to run again. kInvalid: no such rank or task.
Result<std::set<std::string>> TasksOf(const Plan& plan, const Again& again);

// The tasks whose definition has changed since the plan in a record; all if that was too large to
// be stored.
Result<std::set<std::string>> ChangedSince(const store::Record& record, const Plan& plan);

// Removes the results of reconciliations.
void ForgetReconciled(const Plan& plan, Json& done);

}  // namespace muster::plan
