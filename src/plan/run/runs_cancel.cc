// Ending a run before its end: at once, or once its current tasks have ended.

#include "muster/store.h"
#include "plan/run/run_attempts.h"
#include "plan/run/run_body.h"
#include "plan/run/runs.h"
#include "plan/run/side_records.h"

namespace muster::plan {
namespace {

constexpr milliseconds kLookEvery{500};

}  // namespace

// Whether every task that was begun has ended, with its result stored.
Result<bool> Runs::IsDrained(const RunState& run) {
  using Passage = TaskGate::Passage;
  MUSTER_ASSIGN(const store::Record record, Read(run.id));
  MUSTER_ASSIGN(const auto plan, PlanIn(record));
  if (!plan) return gate_->IsEmpty();
  MUSTER_ASSIGN(const Profile* profile, (*plan)->FindProfile(run.profile));
  const bool remote = profile->kind != ProfileKind::kLocal;
  // A task's start is stored before its call, so the report has all that are in progress. A pending
  // call may have ended in another process.
  MUSTER_ASSIGN(const RunReport report, Report(run));
  for (const RankReport& rank : report.ranks) {
    for (const TaskReport& task : rank.tasks) {
      if (task.state != PartState::kRunning) continue;
      const Passage passage = gate_->PassageOf(task.first_state);
      // A failed one waits for its next attempt, which the gate holds back.
      if (passage == Passage::kHeld || passage == Passage::kFailed) continue;
      // A dead process's call ended with it, unless it continues on a remote service.
      if (passage == Passage::kNone && !remote) continue;
      return false;
    }
  }
  return true;
}

Status Runs::EndCancelled(const RunState& run, const std::string& cause,
                          const std::stop_token& stop) {
  MUSTER_TRY(states_.Stop(run.execution, "Cancelled", cause));
  return MarkCancelled(run, stop);
}

// Runs the state machine stored with the run, since the plan may be gone: it sets the migration's
// status and stops what continues on remote services.
Status Runs::MarkCancelled(const RunState& run, const std::stop_token& stop) {
  MUSTER_ASSIGN(const store::Record record, Read(run.id));
  const Json machine = CancelMachineOf(record);
  if (machine.is_null()) return {};
  const std::string name = run.execution + ".c";
  MUSTER_ASSIGN(const auto before, states_.Find(name));
  Status begun;
  if (!before) {
    MUSTER_ASSIGN(const auto plan, PlanIn(record));
    MUSTER_ASSIGN(const ExecutionLog log, LogOf(run, plan.get()));
    const RunReport report = plan ? MakeReport(**plan, log, DoneOf(record), true) : RunReport();
    Json input(run.inputs);
    input[kBegunInput] = BegunExtracts(report, log);
    begun = states_.Start({.name = name,
                           .definition = ToJsonText(machine),
                           .origin = run.path,
                           .machine = run.plan + ".cancel",
                           .input = ToJsonText(input),
                           .queue = QueueOf(run)});
  } else if (before->status != states::ExecutionStatus::kRunning &&
             before->status != states::ExecutionStatus::kSucceeded) {
    begun = states_.Redrive(name);
  }
  // A conflict: another process is cancelling it too.
  if (!begun && begun.error().code != Code::kConflict) return begun;
  MUSTER_TRY(states_.Work(name, stop));
  MUSTER_ASSIGN(const auto marked, states_.Find(name));
  if (marked && marked->status == states::ExecutionStatus::kSucceeded) return {};
  return Error{Code::kUnavailable,
               "migration '" + run.id +
                   "' is cancelled, but its status could not be written, or its remote work "
                   "could not be stopped: " +
                   (marked ? marked->error + ": " + marked->cause : std::string()),
               "fix that, then run 'muster cancel " + run.id + "' again"};
}

Status Runs::Cancel(const std::string& id) {
  MUSTER_ASSIGN(const RunState run, Find(id));
  if (run.status == RunStatus::kInProgress) return EndCancelled(run, "by 'muster cancel'", {});
  if (run.status == RunStatus::kCancelled) {
    MUSTER_ASSIGN(const auto marked, states_.Find(run.execution + ".c"));
    if (!marked || marked->status != states::ExecutionStatus::kSucceeded)
      return MarkCancelled(run, {});
  }
  return Error{Code::kConflict,
               "migration '" + id + "' has ended: " + std::string(NameOf(run.status))};
}

// "waiting for transform posts, which waits for the write lock of …"
Result<std::string> Runs::WhatIsWaitedFor(const RunState& run) {
  MUSTER_ASSIGN(const LiveRun live, Live(run));
  MUSTER_ASSIGN(const RunReport report, Report(run));
  std::string text;
  for (const RankReport& rank : report.ranks) {
    for (const TaskReport& task : rank.tasks) {
      // A stopped task's process may still be working on it.
      if (task.state != PartState::kRunning && task.state != PartState::kStopped) continue;
      text += (text.empty() ? "waiting for " : ", ") + std::string(NameOf(task.phase)) + " " +
              task.name;
      const auto what = live.waits.find(task.first_state);
      if (what != live.waits.end()) text += ", which waits for " + what->second;
    }
  }
  return text;
}

Result<bool> Runs::IsLetGo(const std::string& id) {
  MUSTER_ASSIGN(const store::Record record, Read(id));
  MUSTER_ASSIGN(const WallTime now, store_.Now());
  return !record.due || *record.due <= now;
}

Result<RunState> Runs::Drain(const std::string& id, int threads, RunObserver& observer,
                             std::stop_token stop) {
  MUSTER_ASSIGN(RunState run, Find(id));
  if (run.status != RunStatus::kInProgress)
    return Error{Code::kConflict,
                 "migration '" + id + "' has ended: " + std::string(NameOf(run.status))};
  const std::string execution = run.execution;
  MUSTER_TRY(RequestDrain(store_, run));
  std::string said;
  for (;;) {
    // The request is for one attempt; a later one was resumed on purpose, and ignores it.
    MUSTER_ASSIGN(run, Find(id));
    if (run.execution != execution)
      return Error{Code::kConflict,
                   "migration '" + id + "' was resumed before it was drained: its attempt " +
                       std::to_string(run.attempt) + " continues",
                   "to drain that one, repeat 'muster cancel " + id + " --drain'"};
    if (run.status != RunStatus::kInProgress || stop.stop_requested()) return run;
    MUSTER_ASSIGN(const auto claimed, Claim(id, stop));
    if (claimed) {
      MUSTER_ASSIGN(const RunState held, Describe(*claimed));
      if (held.execution == execution) return Drive(held, threads, stop);
      Release(held);  // resumed since it was read
      continue;
    }
    MUSTER_ASSIGN(const std::string waits, WhatIsWaitedFor(run));
    if (!waits.empty() && waits != said) observer.Waits(waits);
    said = waits;
    env_.Sleep(kLookEvery, stop);
  }
}

}  // namespace muster::plan
