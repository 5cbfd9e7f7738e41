#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "muster/env.h"
#include "muster/json.h"
#include "muster/plan.h"
#include "muster/run_status.h"

namespace muster::plan {

// What a run of a plan has done: plain values, which RunEngine (muster/runs.h) fills in.

// Of a rank or task. kStopped: the run has ended while it was running.
enum class PartState { kWaiting, kRunning, kSucceeded, kFailed, kStopped };
std::string NameOf(PartState state);  // "WAITING", …

// An error as a Catch of a state machine leaves it.
struct CaughtError {
  std::string error = {};
  std::string cause = {};
};
Json ToJson(const CaughtError& error);  // {"Error":…,"Cause":…}

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

  int64_t Unreadable() const;
  ReconciledCounts Counts() const;
};

// A run rank by rank, in the order of their numbers; those done elsewhere are left out.
struct RunReport {
  std::vector<RankReport> ranks;

  // Rows that could not be read, of all objects.
  int64_t Unreadable() const;
};

// For programs: a list of ranks; docs/guide/plans.md names the fields.
Json ToJson(const RunReport& report);

// One attempt of a run.
struct Attempt {
  int64_t number = 1;
  std::string execution;                // its state machine's
  std::vector<std::string> again = {};  // tasks that it repeated although they had succeeded
};

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
Json ToJson(const AttemptReport& report);

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
  // one that of the run. None: unknown.
  std::optional<double> left_s = {};

  bool operator==(const RankProgress&) const = default;
};

struct RunProgress {
  size_t tasks = 0;
  size_t done = 0;
  std::vector<RankProgress> running;
};

RunProgress ProgressOf(const RunReport& report, const LiveRun& live, WallTime now);

}  // namespace muster::plan
