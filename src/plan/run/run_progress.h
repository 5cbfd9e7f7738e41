#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "plan/run/run_report.h"

namespace muster::plan {

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
