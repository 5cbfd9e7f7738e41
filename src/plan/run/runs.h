#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "muster/runs.h"
#include "muster/states.h"
#include "muster/store.h"
#include "plan/compile/state_table.h"
#include "plan/compile/task_gate.h"
#include "plan/model/plan.h"
#include "plan/run/latest.h"
#include "plan/run/run_log.h"
#include "plan/run/run_report.h"
#include "plan/run/run_view.h"

namespace muster::plan {

// How long a driver holds a run without renewing it.
inline constexpr milliseconds kRunLease{15'000};

// Kind and queue of the records of runs.
inline constexpr const char* kRunKind = "plan.run";
inline constexpr const char* kRunQueue = "default";

Error NoSuchRun(const std::string& id);

// Runs of plans on a store: each is a record that pins the plan, and an execution of its state
// machine. One process at a time drives a run: it holds the record's lease, which Drive renews.
// After a crash the run can be resumed once the lease (15 seconds) has ended.
//
// Thread-safe as far as the store is.
class Runs {
 public:
  // `gate`: the executor of `states`, if any; without one, this process cannot drain runs.
  Runs(store::Store& store, states::States& states, Env& env, TaskGate* gate = nullptr);

  // Begins a migration. Relative paths of its profile are relative to `folder` (empty: each
  // process's working folder), also when it is resumed from another folder. kConflict: the tenant
  // has one of that id in that environment; the message has its status. kInvalid: inputs that are
  // missing, unknown or not names.
  Result<RunState> Start(const Plan& plan, const Profile& profile,
                         std::map<std::string, std::string> inputs, const std::string& folder = {});

  // Takes over a run, and drops a request to drain it. One left in progress continues; one that
  // failed gets an attempt that repeats nothing that succeeded, except what is asked for or has
  // changed, and what depends on it (see Invalidate). kConflict: another process drives it, it is
  // completed, or the plan or one of its scripts has changed (the message says how).
  Result<RunState> Resume(const std::string& id, const Plan& plan, const ResumeOptions& options,
                          RunObserver& observer, std::stop_token stop);

  // The tasks that Resume would repeat although they succeeded, by key.
  Result<std::vector<std::string>> DoneAgain(const std::string& id, const Plan& plan,
                                             const Again& again);

  // Drives a run that Start or Resume has returned until it has ended or a stop is requested, with
  // this many concurrent calls. kLeaseLost: another process has claimed the run since; its calls
  // here were stopped, and this process no longer drives any of it.
  Result<RunState> Drive(const RunState& run, int threads, std::stop_token stop);

  // Ends a running one at once: its calls are cancelled where possible, and the migration's status
  // becomes CANCELLED. After a crash, call it again to finish. kConflict: it has ended.
  Status Cancel(const std::string& id);

  // Ends a running one once its current tasks have ended; no more tasks begin. The run's driver
  // does it; a run without one is driven here, with this many concurrent calls. Returns when it has
  // ended or a stop is requested, which leaves the request in force. `observer` gets what the
  // run waits for, whenever that changes.
  Result<RunState> Drain(const std::string& id, int threads, RunObserver& observer,
                         std::stop_token stop);

  // Whether no process holds the run's lease. After a cancel its driver may take a while to release
  // it.
  Result<bool> IsLetGo(const std::string& id);

  // The tasks in progress and what they wait for, for display; empty: none.
  Result<std::string> WhatIsWaitedFor(const RunState& run);

  // As last published by the run's driver.
  Result<LiveRun> Live(const RunState& run);

  // What a run has done so far, rank by rank; no ranks if its plan is too large to be stored.
  Result<RunReport> Report(const RunState& run);

  // The stored attempts of a run, oldest first. `with_tasks` reads their whole histories.
  Result<std::vector<AttemptReport>> Attempts(const RunState& run, bool with_tasks);

  // The events of an attempt; none: it has not begun.
  Result<std::vector<states::Event>> Events(const Attempt& attempt);

  // The id of a run by its id, its migrationId or TENANT/ENVIRONMENT/MIGRATIONID. kInvalid: several
  // have that migrationId; the message lists them. The run need not exist.
  Result<std::string> Resolve(const std::string& text);

  // kNotFound: no such run.
  Result<RunState> Find(const std::string& id);
  // With all of its tasks. kNotFound also if the plan was too large to be stored.
  Result<RunView> View(const std::string& id);
  // In the order of their ids. One that cannot be read, such as a newer version's, has the status
  // kUnreadable and the cause.
  Result<std::vector<RunState>> List(const std::string& after, int limit);

 private:
  Result<store::Record> Read(const std::string& id);
  Result<RunState> Describe(const store::Record& record);
  // Null: it was too large to be stored.
  Result<std::shared_ptr<const PlanWithStates>> PlanIn(const store::Record& record);
  Result<ExecutionLog> LogOf(const RunState& run, const PlanWithStates* pinned);
  Result<std::optional<RunState>> Create(RunState& run, const Plan& plan);
  struct CompiledRun {
    states::ExecutionRequest request;
    StateTable states;
  };
  Result<CompiledRun> Compiled(const Plan& plan, const RunState& run, const Json& done);
  Status Begin(const CompiledRun& compiled);
  Result<Json> DoneSoFar(const Plan& plan, const RunState& run, Json done);
  Result<Json> DoneFor(const store::Record& record, const RunState& run, const Plan& plan,
                       const Again& again, std::vector<std::string>& invalidated);
  // With the run's lease; `hash`: that of the plan it had before it was claimed.
  Result<RunState> ResumeHeld(const store::Record& record, RunState run, const std::string& hash,
                              const Plan& plan, const ResumeOptions& options);
  Result<RunState> NextAttempt(const store::Record& record, RunState run, const Plan& plan,
                               const ResumeOptions& options);
  // None: another process's lease has not ended.
  Result<std::optional<store::Record>> Claim(const std::string& id, std::stop_token stop);
  Result<store::Record> Take(const std::string& id, RunObserver& observer, std::stop_token stop);
  // Whether this process holds a run's record, claimed with that epoch.
  bool Holds(const store::Record& record, int64_t epoch) const;
  // kLeaseLost: another process has claimed the run.
  Status SetDue(const RunState& run, store::Due due);
  Status Renew(const RunState& run);
  void Release(const RunState& run);
  // Runs work that may take longer than a lease. The work is asked to stop when the lease is lost;
  // then kLeaseLost, whatever its result.
  Status WhileRenewing(const RunState& run,
                       const std::function<Status(const std::stop_token& stop)>& work);
  // Whether the run is draining; if so, the gate is closed.
  Result<bool> PrepareGate(const RunState& run);
  // Makes the calls and keeps the lease until the run has ended or a stop is requested.
  Status DriveHeld(const RunState& run, int threads, bool draining, const std::stop_token& stop);
  // Renews the lease, publishes progress and watches for a drain, until `done`. Fails once the
  // lease is lost.
  Status Attend(const RunState& run, bool draining, const std::stop_token& done);
  Result<bool> IsDrained(const RunState& run);
  Status EndCancelled(const RunState& run, const std::string& cause, const std::stop_token& stop);
  Status MarkCancelled(const RunState& run, const std::stop_token& stop);

  store::Store& store_;
  states::States& states_;
  Env& env_;
  TaskGate* const gate_;
  const std::string owner_;
  Latest<Result<RunState>> bodies_;
  Latest<Result<std::shared_ptr<const PlanWithStates>>> plans_;
};

}  // namespace muster::plan
