#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "muster/env.h"
#include "plan/model/plan.h"
#include "plan/run/run_log.h"

namespace muster::plan {

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

  // What running tasks wait for, by the state they began in.
  void SetWaits(const std::map<std::string, std::string>& waits);

  // Leaves out the tasks that were not begun, and ranks without any that were.
  void KeepBegun();
};

// The state of a run by the log of its execution. `done` are the results of earlier attempts, as in
// CompileOptions; `ended`: nothing runs any more.
RunReport MakeReport(const Plan& plan, const ExecutionLog& log, const Json& done, bool ended);

// The extractions whose first state has been left and that have not ended, as a list of {asked,
// answered}: its parameters and its result.
Json BegunExtracts(const RunReport& report, const ExecutionLog& log);

// For programs: a list of ranks; docs/guide/plans.md names the fields.
Json ToJson(const RunReport& report);

}  // namespace muster::plan
