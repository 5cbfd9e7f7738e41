#include "plan/run/run_forecast.h"

#include <algorithm>
#include <map>
#include <set>

#include "plan/explain/estimate.h"

namespace muster::plan {
namespace {

// The last task to end among those that had to end before this one began.
const TaskView* Before(const RunView& view, const TaskView& task) {
  const TaskView* latest = nullptr;
  const auto consider = [&](const TaskView& other) {
    if (!other.end || !task.start || *other.end > *task.start) return;
    if (latest == nullptr || *other.end > *latest->end) latest = &other;
  };
  const RankView* rank = view.FindRank(task.rank);
  for (const TaskView& other : rank->tasks) {
    // Within its phase, the one whose lane it took.
    if (&other != &task) consider(other);
  }
  for (const int64_t need : rank->needs) {
    const RankView* needed = view.FindRank(need);
    if (needed == nullptr) continue;
    for (const TaskView& other : needed->tasks) consider(other);
  }
  return latest;
}

class Forecast {
 public:
  Forecast(const RunView& view, const Plan& plan, const LiveRun& live, WallTime now)
      : view_(view), plan_(plan), live_(live), now_(now) {
    const auto profile = plan.FindProfile(view.run.profile);
    if (!profile) return;
    format_ = (*profile)->format;
    plan_.rates = RatesOf(plan, (*profile)->kind);
  }

  // The remaining tasks are assumed to take as long as planned, at the pace so far, and to start as
  // early as their needs allow.
  WallTime End() const {
    const double pace = Pace();
    std::map<int64_t, WallTime> ends;
    WallTime all = now_;
    for (size_t i = 0; i < view_.ranks.size(); ++i) {
      WallTime ready = now_;
      for (const int64_t need : view_.ranks[i].needs) {
        if (const auto end = ends.find(need); end != ends.end())
          ready = std::max(ready, end->second);
      }
      for (const Phase phase : {Phase::kExtract, Phase::kTransform}) {
        WallTime done = ready;
        for (const TaskView& task : view_.ranks[i].tasks) {
          if (task.phase != phase || task.status == TaskStatus::kSucceeded) continue;
          const WallTime start = task.next_try             ? *task.next_try
                                 : task.start && !task.end ? live_.SinceOr(*task.start)
                                                           : ready;
          const auto takes = std::chrono::duration<double>(EstimateOf(i, task)) * pace;
          done =
              std::max(done, start + std::chrono::duration_cast<std::chrono::milliseconds>(takes));
        }
        ready = done;
      }
      ends[view_.ranks[i].number] = ready;
      all = std::max(all, ready);
    }
    return all;
  }

 private:
  std::chrono::milliseconds EstimateOf(size_t rank, const TaskView& task) const {
    const SecondsRange range =
        task.phase == Phase::kExtract
            ? EstimateExtract(plan_, plan_.objects.at(task.name))
            : EstimateTransform(plan_, plan_.ranks[rank], plan_.scripts.at(task.name), format_);
    return std::chrono::milliseconds(static_cast<int64_t>(500 * (range.min + range.max)));
  }

  // Actual time of the completed tasks relative to the plan's estimate.
  double Pace() const {
    std::chrono::duration<double> took{0};
    std::chrono::duration<double> expected{0};
    for (size_t i = 0; i < view_.ranks.size(); ++i) {
      for (const TaskView& task : view_.ranks[i].tasks) {
        if (task.status != TaskStatus::kSucceeded || task.attempts.empty()) continue;
        const TaskAttempt& last = task.attempts.back();
        const WallTime end = last.end.value_or(now_);
        // Time without a driver, after a crash, does not count.
        const WallTime start = live_.SinceOr(last.start);
        took += end - (start < end ? start : last.start);
        expected += EstimateOf(i, task);
      }
    }
    return expected.count() > 0 ? took / expected : 1;
  }

  const RunView& view_;
  Plan plan_;
  const LiveRun& live_;
  const WallTime now_;
  StagingFormat format_ = StagingFormat::kJson;
};

}  // namespace

void FindCriticalPath(RunView& view, WallTime now) {
  const TaskView* last = nullptr;
  for (const RankView& rank : view.ranks) {
    for (const TaskView& task : rank.tasks) {
      if (!task.start) continue;
      const auto end = [&](const TaskView& of) { return of.end.value_or(now); };
      if (last == nullptr || end(task) > end(*last)) last = &task;
    }
  }
  std::set<std::string> keys;
  // Tasks that took no time could follow each other in a circle.
  for (; last != nullptr && keys.insert(last->Key()).second; last = Before(view, *last)) {
    view.critical_path.insert(view.critical_path.begin(), last->Key());
  }
  for (RankView& rank : view.ranks) {
    for (TaskView& task : rank.tasks) task.critical = task.start && keys.contains(task.Key());
  }
}

WallTime ExpectedEnd(const RunView& view, const Plan& plan, const LiveRun& live, WallTime now) {
  return Forecast(view, plan, live, now).End();
}

}  // namespace muster::plan
