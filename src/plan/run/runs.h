#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "muster/states.h"
#include "muster/store.h"
#include "plan/compile/state_table.h"
#include "plan/compile/task_gate.h"
#include "plan/model/plan.h"
#include "plan/run/run_report.h"
#include "plan/run/run_state.h"
#include "plan/run/run_view.h"

namespace muster::plan {

// How long whoever drives a run has it without a sign of life.
inline constexpr milliseconds kRunLease{15'000};

// What the store calls the records of runs.
inline constexpr const char* kRunKind = "plan.run";

// What is to be done again although it succeeded.
struct Again {
  std::optional<int64_t> rank = {};
  std::optional<std::string> task = {};
};

// What an attempt of a run did, and why it ended.
struct AttemptReport {
  Attempt attempt;
  RunStatus status = RunStatus::kInProgress;
  std::string error;
  std::string cause;
  std::optional<WallTime> start = {};  // none: it has not begun
  std::optional<WallTime> stop = {};
  RunReport did = {};  // the tasks that it has begun, as far as the run's plan knows them
};

// For programs, without the tasks.
Json ToJson(const AttemptReport& report);

// Tells a person what is waited for.
using Sayer = std::function<void(const std::string& what)>;

struct ResumeOptions {
  Again again = {};
  bool accept_changes = false;  // of the plan and its scripts
  Sayer say = {};               // empty: nothing is said
  std::string folder = {};      // for a run of an older version, which has not kept its own
};

// Runs of plans on a store: each is a record that pins the plan, and an execution of its state
// machine. One process at a time drives a run: the record is leased, and renewed by Drive. A crash
// leaves it to whoever resumes it when the lease (15 seconds) is over.
//
// Thread-safe as far as the store is.
class Runs {
 public:
  // `gate`, if there is one, is what the states call; without it nobody can drain a run here.
  Runs(store::Store& store, states::States& states, Env& env, TaskGate* gate = nullptr);

  // Begins a migration. Relative paths of its profile begin in `folder` (empty: where each process
  // works), also when it is resumed from another folder. kConflict: there is one of that id of the
  // same tenant in the same environment, which says how it stands and what to do. kInvalid: inputs
  // that are missing, unknown or no names.
  Result<RunState> Start(const Plan& plan, const Profile& profile,
                         std::map<std::string, std::string> inputs, const std::string& folder = {});

  // Goes on with one, whatever was wished before: drives it if it was left running; if it failed,
  // begins an attempt in which nothing that succeeded is done again, but for what is asked for or
  // changed and what depends on it (see Invalidate). kConflict: another process drives it, it is
  // completed, or the plan or one of its scripts is not what it began with (the message says in
  // what).
  Result<RunState> Resume(const std::string& id, const Plan& plan, const ResumeOptions& options,
                          std::stop_token stop);

  // The tasks that Resume would do again although they succeeded, by key.
  Result<std::vector<std::string>> DoneAgain(const std::string& id, const Plan& plan,
                                             const Again& again);

  // Drives a run that Start or Resume has given until it has ended or a stop is requested, with
  // this many calls at once.
  Result<RunState> Drive(const RunState& run, int threads, std::stop_token stop);

  // Keeps a run ours for as long as a lease, or lets go of it. Drive does that by itself; it is for
  // whoever drives the run's execution in another way. A run that is not ours is left alone.
  void Renew(const std::string& id, bool release);

  // Ends one that runs, at once: what it has started is cancelled as far as that is possible, and
  // the migration's status becomes CANCELLED. A repetition finishes what a crash has left;
  // kConflict: it has ended.
  Status Cancel(const std::string& id);

  // Ends one that runs when the tasks that it has begun have ended; nothing is begun any more. It
  // is whoever drives the run that does so; if nobody does, it is driven here, with as many calls
  // at once. Returns when it has ended or a stop is requested, which leaves the wish in force.
  // `say` gets what is waited for, whenever that changes.
  Result<RunState> Drain(const std::string& id, int threads, const Sayer& say,
                         std::stop_token stop);

  // Whether no process has a run any more, by its lease: one that was cancelled may take a while to
  // let go of it.
  Result<bool> IsLetGo(const std::string& id);

  // Which tasks are under way, and what they wait for; empty: none is.
  Result<std::string> WhatIsWaitedFor(const RunState& run);

  // As whoever drives the run has told lately.
  Result<LiveRun> Live(const RunState& run);

  // What a run has done so far, rank by rank; no ranks if its plan is too large to be kept.
  Result<RunReport> Report(const RunState& run);

  // All of a run's attempts that are known, the first of them first; each without its tasks unless
  // they are asked for, which reads the whole history.
  Result<std::vector<AttemptReport>> Attempts(const RunState& run, bool with_tasks);

  // The id of a run by what a person calls it: that, its migrationId, or
  // TENANT/ENVIRONMENT/MIGRATIONID. kInvalid: several have that migrationId, and which. Whether
  // there is one, Find says.
  Result<std::string> Resolve(const std::string& text);

  // kNotFound: there is none.
  Result<RunState> Find(const std::string& id);
  // The same with all of its tasks. kNotFound also where the plan was too large to be kept.
  Result<RunView> View(const std::string& id);
  // In the order of their ids. One that cannot be read, as a newer version's, has the status
  // kUnreadable and its cause: the others are listed all the same.
  Result<std::vector<RunState>> List(const std::string& after, int limit);

 private:
  Result<store::Record> Read(const std::string& id);
  Result<RunState> Describe(const store::Record& record);
  Result<Json> HistoryOf(const RunState& run);
  Result<RunReport> ReportBy(const Json& history, const RunState& run);
  Result<std::optional<RunState>> Create(RunState& run, const Plan& plan);
  struct CompiledRun {
    states::ExecutionRequest request;
    StateTable states;
  };
  Result<CompiledRun> Compiled(const Plan& plan, const RunState& run, const Json& done);
  // Of an execution; `pinned`: the run's plan, if it was kept.
  Result<StateTable> StatesOf(const std::string& execution, const RunState& run,
                              const Plan* pinned);
  Status Begin(const Plan& plan, const RunState& run, const Json& done);
  Result<Json> DoneSoFar(const Plan& plan, const RunState& run, Json done);
  Result<Json> DoneFor(const store::Record& record, const RunState& run, const Plan& plan,
                       const Again& again, std::vector<std::string>& invalidated);
  Result<RunState> NextAttempt(store::Record record, RunState run, const Plan& plan,
                               const ResumeOptions& options);
  // None: another process has it, or had it until lately.
  Result<std::optional<store::Record>> Claim(const std::string& id, std::stop_token stop);
  Result<store::Record> Take(const std::string& id, const Sayer& say, std::stop_token stop);
  Status PrepareGate(const RunState& run);
  void Attend(const RunState& run, const std::stop_token& done);
  void Publish(const RunState& run, const LiveRun& live);
  Result<bool> IsToDrain(const RunState& run);
  Status DropWish(const std::string& id);
  Result<bool> IsDrained(const RunState& run);
  Status EndCancelled(const RunState& run, const std::string& cause);
  Status MarkCancelled(const RunState& run);

  store::Store& store_;
  states::States& states_;
  Env& env_;
  TaskGate* const gate_;
  const std::string owner_;
};

}  // namespace muster::plan
