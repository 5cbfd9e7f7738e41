#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "muster/env.h"
#include "muster/json.h"
#include "muster/plan.h"
#include "muster/result.h"
#include "muster/states.h"
#include "muster/store.h"

namespace muster::plan {

// Runs of plans on a store. What `muster run`, `resume`, `retry`, `cancel` and `status` do:
//
//   MUSTER_ASSIGN(auto store, store::OpenStore("sqlite:runs.db", env));
//   auto tasks = task::NewExecutors(*store, env);   // muster/executors.h
//   auto engine = plan::NewRunEngine(*store, {tasks.get()}, {}, env);
//   MUSTER_ASSIGN(plan::RunState run,
//                 engine->Start("plan.yaml", {.inputs = {{"migrationId", "m-1"}}}));
//   MUSTER_ASSIGN(run, engine->Drive(run, stop));
//   if (run.status == RunStatus::kCompleted) …
//
// A run is a record that pins the plan, and an execution of the state machine that the plan
// compiles to. One process at a time drives it: it holds the record's lease, which Drive renews.

// One attempt of a run.
struct Attempt {
  int64_t number = 1;
  std::string execution;                // its state machine's
  std::vector<std::string> again = {};  // tasks that it repeated although they had succeeded
};

// A run as stored.
struct RunState {
  // Its key in the store and for commands: the input migrationId, with a suffix if a run of another
  // tenant or environment has the same.
  std::string id;
  std::string plan;
  std::string path;               // of the plan's file, absolute
  std::string folder = {};        // where it was started: relative paths are relative to it
  std::string hash;               // of the plan and its scripts, which it pins
  std::string incarnation = {};   // unique, unlike its id
  bool unmarked_staging = false;  // staged by an older version, without the run's name
  std::string profile;
  std::map<std::string, std::string> inputs;
  std::map<std::string, std::string> variables = {};  // that did not come from the file
  int64_t epoch = 0;  // of the record's lease: Drive drives it only under this claim
  int64_t attempt = 1;
  std::string execution;               // its state machine's, of this attempt
  std::vector<Attempt> attempts = {};  // the latest 100, this one last
  RunStatus status = RunStatus::kInProgress;
  std::string error;
  std::string cause;
  std::string output;                        // JSON text, once it is completed
  WallTime start{};                          // of this attempt
  std::optional<WallTime> first_start = {};  // of the first one; none: an older version began it
  std::optional<WallTime> stop = {};
  // Tasks that this attempt repeats although they had succeeded; set by Resume only.
  std::vector<std::string> invalidated = {};
  // In progress, and its lease is current. Without a driver it continues when it is resumed.
  bool driven = false;

  // An input, empty if it has none of that name.
  std::string Input(const std::string& name) const {
    const auto found = inputs.find(name);
    return found == inputs.end() ? std::string() : found->second;
  }

  WallTime FirstStart() const { return first_start.value_or(start); }
};

struct StartOptions {
  PlanOptions plan = {};                           // its variables and profile
  std::map<std::string, std::string> inputs = {};  // migrationId, tenantId and the plan's own
  // What relative paths of the profile are relative to, also when the run is resumed from another
  // folder. Empty: each process's working folder.
  std::string folder = {};
};

// The parts of a run to repeat although they succeeded.
struct Again {
  std::optional<int64_t> rank = {};
  std::optional<std::string> task = {};  // an object or a script

  explicit operator bool() const { return rank || task; }
};

// Notified by Resume and Drain, on their thread.
class RunObserver {
 public:
  virtual ~RunObserver() = default;
  // What is being waited for, for display, whenever that changes.
  virtual void Waits(const std::string& /*what*/) {}
};

struct ResumeOptions {
  Again again = {};
  bool accept_changes = false;  // of the plan and its scripts
  std::string folder = {};      // for a run of an older version, which did not store its own
  std::string path = {};        // the plan's file, if it is elsewhere now
  std::map<std::string, std::string> variables = {};  // override those of the run
};

struct RunEngineOptions {
  std::string owner = "muster";  // names the driving process for display; need not be unique
  int threads = 8;               // calls at once
};

// What a run has done: plain values, which RunEngine fills in.

// Of a rank or task. kStopped: the run has ended while it was running.
enum class PartState { kWaiting, kRunning, kSucceeded, kFailed, kStopped };
MUSTER_EXPORT std::string_view NameOf(PartState state);  // "WAITING", …

// An error as a Catch of a state machine leaves it.
struct CaughtError {
  std::string error = {};
  std::string cause = {};
};
MUSTER_EXPORT Json ToJson(const CaughtError& error);  // {"Error":…,"Cause":…}

// A failure as reported, and the likely cause of failures like it.
struct FailureReport {
  std::string error;
  std::string cause;
  std::string likely;  // the likely cause; empty: none is known
  std::string remedy;
};

// A task that has failed and is tried again.
struct RetryReport {
  int64_t failed = 0;  // tries so far
  int64_t of = 0;      // the most there are
  WallTime next{};     // when the next one begins
  FailureReport why = {};
};

// One task of a run.
struct TaskReport {
  Phase phase = Phase::kExtract;
  std::string name;
  std::string first_state = {};  // the state in which it begins
  PartState state = PartState::kWaiting;
  std::optional<WallTime> start = {};  // in this attempt; none: an earlier one has done it
  std::optional<WallTime> stop = {};
  std::optional<int64_t> rows = {};  // extracted, or loaded and rejected
  int64_t unreadable = 0;            // beside them: what the source could not give as rows
  int64_t expected_rows = 0;         // by the plan, or by what was extracted
  std::optional<FailureReport> failure = {};
  std::optional<RetryReport> retry = {};  // the next try, if it waits for that
  std::string waits_for = {};             // in the middle of a call; empty: nothing
};

// What muster:reconcile has counted, as far as it is there.
struct ReconciledCounts {
  std::optional<int64_t> extracted = {};
  std::optional<int64_t> staged = {};
  std::optional<int64_t> loaded = {};
  std::optional<int64_t> rejected = {};
  std::optional<int64_t> foreign_keys = {};
};

struct RankReport {
  int64_t number = 0;
  std::string name;
  PartState state = PartState::kWaiting;
  std::vector<TaskReport> tasks = {};
  // What muster:reconcile has counted; null: not yet, or the profile has no check.
  Json reconciled = {};
  std::optional<FailureReport> failure = {};  // of the reconciliation

  MUSTER_EXPORT int64_t Unreadable() const;
  MUSTER_EXPORT ReconciledCounts Counts() const;
};

// A run rank by rank, in the order of their numbers; those done elsewhere are left out.
struct RunReport {
  std::vector<RankReport> ranks;

  // Rows that could not be read, of all objects.
  MUSTER_EXPORT int64_t Unreadable() const;
};

// For programs: a list of ranks; docs/guide/plans.md names the fields.
MUSTER_EXPORT Json ToJson(const RunReport& report);

// What an attempt did, and why it ended.
struct AttemptReport {
  Attempt attempt;
  RunStatus status = RunStatus::kInProgress;
  std::string error;
  std::string cause;
  std::optional<WallTime> start = {};  // none: it has not begun
  std::optional<WallTime> stop = {};
  RunReport did = {};  // the tasks it began that the run's plan still has
};

// Without the tasks.
MUSTER_EXPORT Json ToJson(const AttemptReport& report);

// One event of the state machine that an attempt ran.
struct RunEvent {
  WallTime time{};
  std::string state;  // empty: none
  std::string type;   // "TaskStateEntered"
  std::string error;  // its name; empty: none
  Json json = {};     // all of it, as GetExecutionHistory of AWS shows it
};

// What the driver of a run publishes.
struct LiveRun {
  std::map<std::string, int64_t> rows = {};       // of tasks in progress, by their first state
  std::map<std::string, std::string> waits = {};  // what they wait for, by the same
  // When it began to drive: rates are measured from then on. None: unknown.
  std::optional<WallTime> since = {};

  WallTime SinceOr(WallTime start) const { return since ? std::max(*since, start) : start; }
};

// The progress of a rank that is in progress.
struct RankProgress {
  int64_t number = 0;
  size_t tasks = 0;
  size_t done = 0;
  int64_t rows = 0;           // of all its tasks, finished or not
  int64_t expected_rows = 0;  // by the plan, and by what was extracted
  double rows_per_s = 0;      // since it began, or was resumed
  // Until it ends, by the rows that are left and the rate so far: the rank's own, or before it has
  // one that of the run. None: unknown, also while a task waits to be retried.
  std::optional<double> left_s = {};
  std::optional<WallTime> next_retry = {};  // the first one that a task waits for

  bool operator==(const RankProgress&) const = default;
};

struct RunProgress {
  size_t tasks = 0;
  size_t done = 0;
  std::vector<RankProgress> running;
};

MUSTER_EXPORT RunProgress ProgressOf(const RunReport& report, const LiveRun& live, WallTime now);

// Starts, resumes, drives, ends and reports runs.
//
// Thread-safe, except that one engine drives one run at a time: a second Drive or Drain is
// kConflict. For several runs at once, make an engine for each.
//
// Every call may fail with the store's errors. What a call was doing when the process died is
// finished by repeating it, or by resuming the run once its lease (15 seconds) has ended. Runs that
// do not exist are kNotFound.
class RunEngine {
 public:
  virtual ~RunEngine() = default;

  // Begins a run of the plan in a file, for Drive. kInvalid: lists every problem of the plan, or
  // the inputs that are missing, unknown or unusable. kConflict: the tenant has a run of that id in
  // that environment; the message has its status.
  virtual Result<RunState> Start(const std::string& path, const StartOptions& options) = 0;

  // Takes over a run, for Drive, and drops a request to drain it. One left in progress continues;
  // one that failed gets an attempt that repeats nothing that succeeded, except what is asked for
  // or has changed, and what depends on it. Waits up to 20 seconds for the lease of a driver that
  // may be dead. kConflict: another process drives it, it is completed, or the plan or one of its
  // scripts has changed (the message says how). kInvalid: as for Start. kCancelled: stopped while
  // it waited.
  virtual Result<RunState> Resume(const std::string& id, const ResumeOptions& options,
                                  RunObserver& observer, std::stop_token stop) = 0;

  // The tasks that Resume would repeat although they succeeded: "extract/OBJECT",
  // "transform/SCRIPT". Changes nothing.
  virtual Result<std::vector<std::string>> Repeats(const std::string& id,
                                                   const ResumeOptions& options) = 0;

  // Drives a run that Start or Resume has returned, until it has ended (any status but kInProgress)
  // or a stop is requested: the calls in progress are then stopped, and the run can be resumed at
  // once. kLeaseLost: another process has claimed the run since; its calls here were stopped.
  virtual Result<RunState> Drive(const RunState& run, std::stop_token stop) = 0;

  // Ends a running one at once: its calls are cancelled where possible, and its status becomes
  // kCancelled. kConflict: it has ended. Its driver, if alive, notices within seconds.
  virtual Status Cancel(const std::string& id) = 0;

  // Ends a running one once its current tasks have ended; no more tasks begin. The run's driver
  // does it; a run without one is driven here. Returns when it has ended or a stop is requested,
  // which leaves the request in force. kConflict: it has ended, or was resumed since.
  virtual Result<RunState> Drain(const std::string& id, RunObserver& observer,
                                 std::stop_token stop) = 0;

  virtual Result<RunState> Find(const std::string& id) = 0;

  // Runs in the order of their ids, after `after`. One that cannot be read has the status
  // kUnreadable and the cause.
  virtual Result<std::vector<RunState>> List(const std::string& after, int limit) = 0;

  // The id of a run by its id, its migrationId or TENANT/ENVIRONMENT/MIGRATIONID. kInvalid: several
  // have that migrationId; the message lists them. The run need not exist.
  virtual Result<std::string> Resolve(const std::string& text) = 0;

  // What the run has done so far, rank by rank; no ranks if its plan was too large to be stored.
  virtual Result<RunReport> Report(const RunState& run) = 0;

  // Rows of tasks in progress, as last published by the run's driver.
  virtual Result<LiveRun> Live(const RunState& run) = 0;

  // The stored attempts, oldest first. `with_tasks` reads their whole histories.
  virtual Result<std::vector<AttemptReport>> Attempts(const RunState& run, bool with_tasks) = 0;

  // The events of an attempt; empty: it has not begun, or is no longer stored.
  virtual Result<std::vector<RunEvent>> Events(const Attempt& attempt) = 0;

  // Whether no process holds the run's lease. After a cancel its driver may take a while to
  // release it.
  virtual Result<bool> IsReleased(const std::string& id) = 0;

  // The tasks in progress and what they wait for, for display; empty: none.
  virtual Result<std::string> WhatIsWaitedFor(const RunState& run) = 0;
};

// `executors` make the calls of the plan's tasks; the first that runs a resource gets its calls, so
// an executor of your own before the standard ones (muster/executors.h) replaces them for
// that resource. Without any, runs can only be read. The store, `env` and
// the executors must outlive the engine.
MUSTER_EXPORT std::unique_ptr<RunEngine> NewRunEngine(store::Store& store,
                                                      std::vector<states::TaskExecutor*> executors,
                                                      const RunEngineOptions& options, Env& env);

}  // namespace muster::plan
