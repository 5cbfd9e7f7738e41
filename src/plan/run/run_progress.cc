#include "muster/runs.h"

namespace muster::plan {
namespace {

// The rows processed by the current driver of the run, and since when.
struct Pace {
  int64_t rows = 0;
  std::optional<WallTime> since = {};

  void Add(const Pace& other) {
    rows += other.rows;
    if (other.since) since = since ? std::min(*since, *other.since) : *other.since;
  }

  double PerSecond(WallTime now) const {
    if (!since || now <= *since) return 0;
    return static_cast<double>(rows) / std::chrono::duration<double>(now - *since).count();
  }
};

int64_t RowsOf(const TaskReport& task, const LiveRun& live) {
  if (task.state == PartState::kSucceeded) return task.rows.value_or(task.expected_rows);
  const auto found = live.rows.find(task.first_state);
  return task.state == PartState::kRunning && found != live.rows.end() ? found->second : 0;
}

}  // namespace

RunProgress ProgressOf(const RunReport& report, const LiveRun& live, WallTime now) {
  RunProgress progress;
  Pace run;
  for (const RankReport& rank : report.ranks) {
    RankProgress one{.number = rank.number, .tasks = rank.tasks.size()};
    Pace pace;
    for (const TaskReport& task : rank.tasks) {
      const int64_t rows = RowsOf(task, live);
      const bool done = task.state == PartState::kSucceeded;
      if (done) ++one.done;
      one.rows += rows;
      one.expected_rows += done ? rows : std::max(rows, task.expected_rows);
      const bool before = task.stop && live.since && *task.stop <= *live.since;
      if (task.retry) {
        one.next_retry = std::min(one.next_retry.value_or(task.retry->next), task.retry->next);
      }
      if (task.start && !before) pace.Add({rows, live.SinceOr(*task.start)});
    }
    progress.tasks += one.tasks;
    progress.done += one.done;
    run.Add(pace);
    if (rank.state != PartState::kRunning) continue;
    one.rows_per_s = pace.PerSecond(now);
    progress.running.push_back(one);
  }
  for (RankProgress& rank : progress.running) {
    const double rate = rank.rows_per_s > 0 ? rank.rows_per_s : run.PerSecond(now);
    const auto left = static_cast<double>(rank.expected_rows - rank.rows);
    if (rate > 0 && left > 0 && !rank.next_retry) rank.left_s = left / rate;
  }
  return progress;
}

}  // namespace muster::plan
