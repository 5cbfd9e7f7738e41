#pragma once

#include <map>
#include <string>

#include "cli/context.h"
#include "cli/progress.h"
#include "plan/run_progress.h"
#include "plan/runs.h"

namespace muster::cli {

// Tells people how far a run is, by what the store says of it, whoever drives it: how many tasks
// are done and, of every rank that is under way, tasks, rows, rate and time left.
class RunFollower {
 public:
  enum class Events { kNone, kText, kJson };

  // `events`: also every change of a task; as text above the progress, or as JSON on `context.out`,
  // where those of ranks are told as well. What it is given must outlive it.
  RunFollower(plan::Runs& runs, plan::RunState run, Progress& progress, Context& context,
              Events events)
      : runs_(runs),
        run_(std::move(run)),
        progress_(progress),
        context_(context),
        events_(events) {}

  // Looks until the run has ended or a stop is requested. A store that does not answer is asked
  // again; kUnavailable: for half a minute it has not.
  Result<plan::RunState> Follow(const std::stop_token& stop);

 private:
  Status Look();
  void ReportTasks(const plan::RunReport& report, const std::map<std::string, int64_t>& live);
  void ReportRanks(const plan::RunProgress& progress);
  void ReportRetries(const plan::RunReport& report);
  void WarnIfLeft();

  plan::Runs& runs_;
  plan::RunState run_;
  Progress& progress_;
  Context& context_;
  const Events events_;
  std::map<std::string, std::string> tasks_;  // what was told of each
  std::map<std::string, int64_t> retries_;    // the last one of each that was told
  std::map<int64_t, plan::RankProgress> ranks_;
  bool left_ = false;
};

// "rank 600: 11s left, 3 of 11 tasks, 1200 of 5000 rows, 340 rows/s".
std::string TextOf(const plan::RankProgress& rank);

}  // namespace muster::cli
