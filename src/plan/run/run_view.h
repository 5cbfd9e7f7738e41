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

// A PartState; kBackoff: it is RUNNING, and waits for its next attempt.
enum class TaskStatus { kWaiting, kRunning, kBackoff, kSucceeded, kFailed, kStopped };
std::string NameOf(TaskStatus status);  // "waiting"

struct TaskView {
  Phase phase = Phase::kExtract;
  std::string name;
  int64_t rank = 0;
  TaskStatus status = TaskStatus::kWaiting;
  std::string why = {};  // it does not run, unless it has succeeded
  bool earlier = false;  // succeeded in an earlier attempt of the run
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
  std::optional<RankProgress> progress = {};  // while it is under way
  std::vector<TaskView> tasks = {};           // extracts first
};

// A run with all tasks of its plan and their status.
struct RunView {
  RunState run;
  std::vector<RankView> ranks;
  // Keys of tasks from the first to the last, each of which began when the one before had ended.
  std::vector<std::string> critical_path;
  std::optional<WallTime> expected_end;  // while it runs: by the plan's estimates and its pace

  // Null: there is none.
  const RankView* FindRank(int64_t number) const;
  const TaskView* Find(Phase phase, const std::string& name) const;
};

// Statuses come from `report`, the attempts of each task from the log of the execution.
RunView ViewRun(const Plan& plan, RunState run, const RunReport& report, const ExecutionLog& log,
                LiveRun live, WallTime now);

}  // namespace muster::plan
