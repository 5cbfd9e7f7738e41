#pragma once

#include <map>
#include <set>
#include <string>

#include "muster/store.h"
#include "plan/compile/profile_states.h"
#include "plan/run/runs.h"

namespace muster::plan {

// Fills in defaults. kInvalid names all inputs that are missing, unknown or not usable.
Status CompleteInputs(const Plan& plan, std::map<std::string, std::string>& inputs);

// What the states of a run know of it.
RunIdentity IdentityOf(const RunState& run);

// The body of a run's record: the run, what its plan means, how to mark it as cancelled, and the
// results of tasks that earlier attempts have done, as in CompileOptions.
std::string RunBody(const RunState& run, const Plan& plan, const Json& done);
Result<RunState> ReadRunBody(const store::Record& record);
Json DoneOf(const store::Record& record);

// The state machine by which the migration's status becomes CANCELLED and what continues elsewhere
// is stopped; null: there is none. Its input has BegunExtracts beside the run's own.
inline constexpr const char* kBegunInput = "muster:begun";
Json CancelMachineOf(const store::Record& record);

// The plan that a record holds, as ReadCanonical gives it; none: it was too large.
Result<std::optional<Plan>> PinnedPlan(const store::Record& record);

// Whether a run was begun by this very plan, scripts and all. One that a version has begun which
// did not look into scripts is known by the rest.
bool IsPinned(const store::Record& record, const Plan& plan);

// In what a plan differs from the one that a record holds.
std::string DescribeChanges(const store::Record& record, const Plan& plan);

// Adds the tasks that have succeeded in an execution, by its log. Those that the plan does not
// have, or has in another rank, are left out.
void AddDone(const Plan& plan, const ExecutionLog& log, Json& done);

// The tasks that are to be done again. kInvalid: there is no such rank or task.
Result<std::set<std::string>> TasksOf(const Plan& plan, const Again& again);

// Those that a plan changes which is not the one that a record holds; all if that was too large to
// be kept.
Result<std::set<std::string>> ChangedSince(const store::Record& record, const Plan& plan);

// Takes out which ranks were reconciled.
void ForgetReconciled(const Plan& plan, Json& done);

}  // namespace muster::plan
