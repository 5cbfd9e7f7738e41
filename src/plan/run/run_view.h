#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/json.h"
#include "muster/env.h"
#include "muster/result.h"
#include "muster/runs.h"
#include "plan/model/plan.h"
#include "plan/run/run_report.h"

namespace muster::plan {

// A PartState; kBackoff: RUNNING, but waiting for the next attempt.
enum class TaskStatus { kWaiting, kRunning, kBackoff, kSucceeded, kFailed, kStopped };
std::string NameOf(TaskStatus status);  // "waiting"

struct TaskView {
  Phase phase = Phase::kExtract;
  std::string name;
  int64_t rank = 0;
  TaskStatus status = TaskStatus::kWaiting;
  std::string why = {};  // why it does not run; empty if it has succeeded
  bool earlier = false;  // completed by an earlier attempt of the run
  bool critical = false;
  std::optional<WallTime> start = {};
  std::optional<WallTime> end = {};
  std::optional<WallTime> next_try = {};
  std::optional<int64_t> rows = {};  // also while it is in progress
  int64_t expected_rows = 0;
  std::optional<FailureReport> failure = {};
  int64_t max_attempts = 1;
  std::vector<std::string> reads = {};
  std::string target = {};
  std::vector<TaskAttempt> attempts = {};
  std::string input = {};  // JSON text, of the last attempt
  std::string output = {};
  std::vector<TaskLogLine> log = {};

  std::string Key() const { return KeyOf(phase, name); }
};

struct RankView {
  int64_t number = 0;
  std::string name;
  std::string group;
  bool external = false;
  std::vector<int64_t> needs;
  TaskStatus status = TaskStatus::kWaiting;
  std::string why = {};
  std::optional<WallTime> start = {};
  std::optional<WallTime> end = {};
  Json reconciled = {};  // as in RankReport
  std::optional<FailureReport> failure = {};
  std::optional<RankProgress> progress = {};  // while it is in progress
  std::vector<TaskView> tasks = {};           // extracts first
};

// A run with all tasks of its plan and their status.
struct RunView {
  RunState run;
  std::vector<RankView> ranks;
  // Keys of tasks from first to last, each of which began when the previous one ended.
  std::vector<std::string> critical_path;
  std::optional<WallTime>
      expected_end;  // while it runs: from the plan's estimates and the pace so far

  // Null: no such rank.
  const RankView* FindRank(int64_t number) const;
  const TaskView* Find(Phase phase, const std::string& name) const;
};

// Statuses come from `report`, attempts of tasks from the execution's log.
RunView ViewRun(const Plan& plan, RunState run, const RunReport& report, const ExecutionLog& log,
                LiveRun live, WallTime now);

}  // namespace muster::plan
