// Resuming a run: its lease, and what the next attempt repeats.

#include "core/planted_bug.h"
#include "muster/store.h"
#include "plan/model/data_flow.h"
#include "plan/model/plan_json.h"
#include "plan/run/run_attempts.h"
#include "plan/run/run_body.h"
#include "plan/run/runs.h"
#include "plan/run/side_records.h"

namespace muster::plan {
namespace {

constexpr milliseconds kLookEvery{500};
constexpr milliseconds kPatience = kRunLease + kRunLease / 3;

Error ResumedByAnother(const std::string& id) {
  return {Code::kConflict, "another process has resumed migration '" + id + "'"};
}

Error IsCompleted(const std::string& id) {
  return {Code::kConflict, "migration '" + id + "' is completed",
          "'muster retry " + id + " --rank N' repeats a part of it"};
}

}  // namespace

// A dead driver's lease ends soon, so waiting is worthwhile. A live driver renews it meanwhile.
Result<store::Record> Runs::Take(const std::string& id, RunObserver& observer,
                                 std::stop_token stop) {
  int64_t seen = 0;
  const MonoTime end = env_.MonoNow() + kPatience;
  while (true) {
    MUSTER_ASSIGN(auto claimed, Claim(id, stop));
    if (claimed) return *std::move(claimed);
    if (PLANTED_BUG(runs_are_taken_from_their_drivers)) return Read(id);
    MUSTER_ASSIGN(const store::Record record, Read(id));
    if (seen == 0) {
      observer.Waits(
          "another process drove migration '" + id + "' until recently: waiting up to " +
          std::to_string(
              std::chrono::duration_cast<std::chrono::seconds>(end - env_.MonoNow()).count()) +
          " s for its lease to end");
    }
    const bool renewed = seen != 0 && record.version != seen;
    seen = record.version;
    if (renewed || env_.MonoNow() >= end)
      return Error{Code::kConflict, "another process drives migration '" + id + "'",
                   "'muster status " + id + "' shows its progress"};
    if (!env_.Sleep(kLookEvery, stop)) return Error{Code::kCancelled, "stopped"};
  }
}

Result<Json> Runs::DoneSoFar(const Plan& plan, const RunState& run, Json done) {
  const PlanWithStates given(plan);
  MUSTER_ASSIGN(const ExecutionLog log, LogOf(run, &given));
  AddDone(plan, log, done);
  return done;
}

// The results that a new attempt keeps.
Result<Json> Runs::DoneFor(const store::Record& record, const RunState& run, const Plan& plan,
                           const Again& again, std::vector<std::string>& invalidated) {
  MUSTER_ASSIGN(std::set<std::string> tasks, TasksOf(plan, again));
  MUSTER_ASSIGN(Json done, DoneSoFar(plan, run, DoneOf(record)));
  if (!IsPinned(record, plan)) {
    MUSTER_ASSIGN(std::set<std::string> changed, ChangedSince(record, plan));
    tasks.merge(changed);
    // A changed plan may put rows elsewhere.
    ForgetReconciled(plan, done);
  }
  invalidated = Invalidate(plan, tasks, done);
  return done;
}

Result<std::vector<std::string>> Runs::DoneAgain(const std::string& id, const Plan& plan,
                                                 const Again& again) {
  MUSTER_ASSIGN(const store::Record record, Read(id));
  MUSTER_ASSIGN(const RunState run, Describe(record));
  std::vector<std::string> invalidated;
  MUSTER_TRY(DoneFor(record, run, plan, again, invalidated));
  return invalidated;
}

Result<RunState> Runs::Resume(const std::string& id, const Plan& plan, const ResumeOptions& options,
                              RunObserver& observer, std::stop_token stop) {
  MUSTER_ASSIGN(const store::Record before, Read(id));
  MUSTER_ASSIGN(const RunState seen, Describe(before));
  if (!PLANTED_BUG(plans_are_not_pinned) && !IsPinned(before, plan) && !options.accept_changes) {
    return Error{Code::kConflict,
                 "the plan of migration '" + id +
                     "' has changed since it began: " + DescribeChanges(before, plan),
                 "undo that, or accept it with --accept-changes"};
  }
  MUSTER_TRY(TasksOf(plan, options.again));
  if (seen.status == RunStatus::kCompleted && !options.again) return IsCompleted(id);
  MUSTER_ASSIGN(const store::Record record, Take(id, observer, stop));
  MUSTER_ASSIGN(RunState run, Describe(record));
  auto resumed = ResumeHeld(record, run, seen.hash, plan, options);
  if (!resumed) Release(run);
  return resumed;
}

Result<RunState> Runs::ResumeHeld(const store::Record& record, RunState run,
                                  const std::string& hash, const Plan& plan,
                                  const ResumeOptions& options) {
  // While this process waited, another may have completed the run, or resumed it with another plan.
  if (!PLANTED_BUG(completed_runs_are_begun_again)) {
    if (run.hash != hash) return ResumedByAnother(run.id);
    if (run.status == RunStatus::kCompleted && !options.again) return IsCompleted(run.id);
  }
  MUSTER_TRY(DropDrainRequest(store_, run.id));
  if (run.status == RunStatus::kInProgress) {
    // Its driver died, perhaps before it had started the execution. If it did start, that state
    // machine continues, even if this version compiles the plan to another one.
    MUSTER_ASSIGN(const auto begun, states_.Find(run.execution));
    if (!options.again && IsPinned(record, plan)) {
      if (begun) return run;
      MUSTER_ASSIGN(const CompiledRun compiled, Compiled(plan, run, DoneOf(record)));
      MUSTER_TRY(Begin(compiled));
      return run;
    }
    // The machine that was started lacks the requested repetitions.
    if (begun) {
      MUSTER_TRY(WhileRenewing(run, [&](const std::stop_token& lost) {
        return EndCancelled(run, "to continue with another plan, or to repeat parts of it", lost);
      }));
    }
  }
  return NextAttempt(record, std::move(run), plan, options);
}

Result<RunState> Runs::NextAttempt(const store::Record& record, RunState run, const Plan& plan,
                                   const ResumeOptions& options) {
  MUSTER_ASSIGN(const Json done, DoneFor(record, run, plan, options.again, run.invalidated));
  // Runs of older versions have none.
  if (run.incarnation.empty()) run.incarnation = env_.NewId();
  if (run.folder.empty()) run.folder = options.folder;
  AddAttempt(run);
  run.hash = HashOf(plan);
  run.variables = plan.given;
  run.status = RunStatus::kInProgress;
  MUSTER_ASSIGN(const CompiledRun compiled, Compiled(plan, run, done));
  const std::string body = RunBody(run, plan, done);
  MUSTER_TRY(store::Update(
      store_, kRunKind, run.id,
      [&](std::optional<store::Record> stored) -> Result<std::optional<store::Change>> {
        if (!stored || !Holds(*stored, run.epoch)) return ResumedByAnother(run.id);
        stored->body = body;
        return store::Change::Put(*std::move(stored), store::Due::After(kRunLease));
      }));
  MUSTER_TRY(Begin(compiled));
  return run;
}

}  // namespace muster::plan
