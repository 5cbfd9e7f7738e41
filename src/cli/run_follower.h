#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>

#include "cli/context.h"
#include "cli/progress.h"
#include "muster/runs.h"

namespace muster::cli {

// Shows a run's progress from the store, whichever process drives it: how many tasks are done and,
// for every active rank, tasks, rows, rate and time left.
class RunFollower {
 public:
  enum class Events { kNone, kText, kJson };

  // `events`: also every task change; as text above the progress, or as JSON on `context.out`, with
  // rank changes too. Arguments must outlive it.
  RunFollower(plan::RunEngine& runs, plan::RunState run, Progress& progress, Context& context,
              Events events)
      : runs_(runs),
        run_(std::move(run)),
        progress_(progress),
        context_(context),
        events_(events) {}

  // Polls until the run has ended or a stop is requested. kUnavailable: the store has not responded
  // for half a minute.
  Result<plan::RunState> Follow(const std::stop_token& stop);

 private:
  Status Look();
  void ReportTasks(const plan::RunReport& report, const std::map<std::string, int64_t>& live);
  void ReportRanks(const plan::RunProgress& progress);
  void ReportRetries(const plan::RunReport& report);
  void WarnIfLeft();

  plan::RunEngine& runs_;
  plan::RunState run_;
  Progress& progress_;
  Context& context_;
  const Events events_;
  std::map<std::string, std::string> tasks_;  // last reported state of each
  std::map<std::string, int64_t> retries_;    // last reported retry of each
  std::map<int64_t, plan::RankProgress> ranks_;
  bool left_ = false;
  bool has_looked_ = false;
};

// Shows what a run waits for.
class Waiting final : public plan::RunObserver {
 public:
  explicit Waiting(std::function<void(const std::string& what)> say) : say_(std::move(say)) {}
  void Waits(const std::string& what) override { say_(what); }

 private:
  const std::function<void(const std::string& what)> say_;
};

// "rank 600: 11s left, 3 of 11 tasks, 1200 of 5000 rows, 340 rows/s".
std::string TextOf(const plan::RankProgress& rank);

}  // namespace muster::cli
