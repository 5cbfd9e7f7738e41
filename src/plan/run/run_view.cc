#include "plan/run/run_view.h"

#include <algorithm>
#include <set>

#include "core/enum_names.h"
#include "plan/run/run_forecast.h"

namespace muster::plan {
namespace {

std::string RankWord(int64_t rank) { return "rank " + std::to_string(rank); }

TaskStatus StatusOf(PartState state) {
  switch (state) {
    case PartState::kWaiting:
      return TaskStatus::kWaiting;
    case PartState::kRunning:
      return TaskStatus::kRunning;
    case PartState::kSucceeded:
      return TaskStatus::kSucceeded;
    case PartState::kFailed:
      return TaskStatus::kFailed;
    case PartState::kStopped:
      return TaskStatus::kStopped;
  }
  return TaskStatus::kWaiting;
}

class Viewer {
 public:
  Viewer(const Plan& plan, RunState run, LiveRun live, WallTime now)
      : plan_(plan), live_(std::move(live)), now_(now) {
    view_.run = std::move(run);
    for (const Rank& rank : plan.ranks) AddRank(rank);
  }

  RunView View(const RunReport& report, const ExecutionLog& log) {
    for (const RankReport& rank : report.ranks) Take(rank, log);
    for (const RankProgress& rank : ProgressOf(report, live_, now_).running) {
      view_.ranks[*plan_.FindRank(rank.number)].progress = rank;
    }
    for (RankView& rank : view_.ranks) Settle(rank);
    for (RankView& rank : view_.ranks) {
      for (TaskView& task : rank.tasks) Explain(rank, task);
      if (rank.status != TaskStatus::kSucceeded && rank.status != TaskStatus::kRunning) {
        rank.why = WhyRank(rank);
      }
    }
    FindCriticalPath(view_, now_);
    if (view_.run.status == RunStatus::kInProgress)
      view_.expected_end = ExpectedEnd(view_, plan_, live_, now_);
    return std::move(view_);
  }

 private:
  void AddRank(const Rank& rank) {
    RankView& added = view_.ranks.emplace_back();
    added.number = rank.number;
    added.name = rank.name;
    added.group = rank.group;
    added.external = rank.external;
    added.needs = rank.needs;
    for (const Reference& object : rank.extract) {
      const ExtractTask& task = plan_.objects.at(object.name);
      AddTask(added, Phase::kExtract, task.name, task.rules);
    }
    for (const Reference& script : rank.transform) {
      const TransformTask& task = plan_.scripts.at(script.name);
      TaskView& view = AddTask(added, Phase::kTransform, task.name, task.rules);
      view.reads = plan_.ReadBy(task, rank);
      view.target = task.Target();
    }
  }

  TaskView& AddTask(RankView& rank, Phase phase, const std::string& name, const PhaseRules& rules) {
    TaskView& task = rank.tasks.emplace_back();
    task.phase = phase;
    task.name = name;
    task.rank = rank.number;
    task.max_attempts = rules.retry.attempts + 1;
    return task;
  }

  void Take(const RankReport& report, const ExecutionLog& log) {
    RankView& rank = view_.ranks[*plan_.FindRank(report.number)];
    rank.status = StatusOf(report.state);
    rank.reconciled = report.reconciled;
    rank.failure = report.failure;
    for (size_t i = 0; i < report.tasks.size(); ++i) {
      TaskView& task = rank.tasks[i];
      if (const TaskLog* did = log.Find(rank.number, task.phase, task.name)) Take(*did, task);
      Take(report.tasks[i], task);
    }
  }

  static void Take(const TaskLog& log, TaskView& task) {
    task.attempts = log.attempts;
    if (log.asked) task.input = ToJsonText(*log.asked);
    if (log.result.is_object()) task.output = ToJsonText(log.result);
    task.log = log.lines;
  }

  void Take(const TaskReport& report, TaskView& task) {
    task.status = report.retry ? TaskStatus::kBackoff : StatusOf(report.state);
    task.start = report.start;
    task.end = report.stop;
    task.rows = report.rows;
    task.expected_rows = report.expected_rows;
    task.failure = report.failure;
    task.earlier = report.state == PartState::kSucceeded && !report.start;
    if (const auto rows = live_.rows.find(report.first_state);
        report.state == PartState::kRunning && rows != live_.rows.end())
      task.rows = rows->second;
    if (!report.waits_for.empty()) task.why = "waits for " + report.waits_for;
    if (report.retry) task.next_try = report.retry->next;
    if (!task.attempts.empty()) SettleLast(task);
  }

  // The status that follows from a task's last attempt.
  void SettleLast(TaskView& task) {
    TaskAttempt& last = task.attempts.back();
    if (task.next_try) last.backoff_until = task.next_try;
    if (task.status != TaskStatus::kStopped) return;
    task.end = last.end ? last.end : view_.run.stop;
    if (!last.end) last.status = AttemptStatus::kStopped;
    last.end = task.end;
  }

  void Settle(RankView& rank) {
    std::set<TaskStatus> seen;
    for (const TaskView& task : rank.tasks) {
      seen.insert(task.status);
      if (task.start) rank.start = std::min(rank.start.value_or(*task.start), *task.start);
      if (task.end) rank.end = std::max(rank.end.value_or(*task.end), *task.end);
    }
    if (rank.external) rank.status = TaskStatus::kSucceeded;
    if (rank.status == TaskStatus::kRunning && seen.contains(TaskStatus::kBackoff) &&
        !seen.contains(TaskStatus::kRunning))
      rank.status = TaskStatus::kBackoff;
    const bool goes_on = rank.status == TaskStatus::kRunning || rank.status == TaskStatus::kBackoff;
    if (goes_on || rank.status == TaskStatus::kWaiting) rank.end.reset();
  }

  std::string WhyRank(const RankView& rank) const {
    if (rank.failure) return "rows are missing: " + rank.failure->cause;
    if (rank.status == TaskStatus::kFailed) return "one of its tasks has failed";
    if (rank.status == TaskStatus::kBackoff) return "one of its tasks waits for a retry";
    if (rank.status == TaskStatus::kStopped) return "the run has ended meanwhile";
    std::string waits;
    for (const int64_t need : rank.needs) {
      const RankView* needed = view_.FindRank(need);
      if (needed == nullptr || needed->status == TaskStatus::kSucceeded) continue;
      if (needed->status == TaskStatus::kFailed) return RankWord(need) + " has failed";
      waits += (waits.empty() ? "waits for " : ", ") + RankWord(need);
    }
    if (!waits.empty()) return waits;
    if (view_.run.status == RunStatus::kFailed) return "the run has failed before";
    if (view_.run.status == RunStatus::kCancelled) return "the run was cancelled before";
    return "comes next";
  }

  void Explain(const RankView& rank, TaskView& task) const {
    switch (task.status) {
      case TaskStatus::kRunning:
      case TaskStatus::kSucceeded:
        return;
      case TaskStatus::kFailed:
        task.why = "failed after " + std::to_string(task.attempts.size()) +
                   (task.attempts.size() == 1 ? " attempt" : " attempts");
        if (task.failure && !task.failure->error.empty()) task.why += ": " + task.failure->error;
        return;
      case TaskStatus::kBackoff:
        task.why = "attempt " + std::to_string(task.attempts.size()) + " of " +
                   std::to_string(task.max_attempts) + " has failed; backs off before the next";
        return;
      case TaskStatus::kStopped:
        task.why = "the run has ended while it ran";
        return;
      case TaskStatus::kWaiting:
        break;
    }
    const bool extracted =
        std::all_of(rank.tasks.begin(), rank.tasks.end(), [](const TaskView& other) {
          return other.phase != Phase::kExtract || other.status == TaskStatus::kSucceeded;
        });
    task.why = WhyRank(rank);
    if (rank.status == TaskStatus::kWaiting) return;
    if (task.phase == Phase::kTransform && !extracted) {
      task.why = rank.status == TaskStatus::kFailed
                     ? "the extract phase of " + RankWord(rank.number) + " has failed"
                     : "waits for the extract phase of " + RankWord(rank.number);
    } else if (view_.run.status == RunStatus::kInProgress) {
      task.why = "waits for a free place";
    }
  }

  const Plan& plan_;
  const LiveRun live_;
  const WallTime now_;
  RunView view_;
};

}  // namespace

std::string NameOf(TaskStatus status) {
  static constexpr EnumNames<TaskStatus, 6> kNames{{{
      {TaskStatus::kWaiting, "waiting"},
      {TaskStatus::kRunning, "running"},
      {TaskStatus::kBackoff, "backoff"},
      {TaskStatus::kSucceeded, "succeeded"},
      {TaskStatus::kFailed, "failed"},
      {TaskStatus::kStopped, "stopped"},
  }}};
  return std::string(kNames.NameOf(status));
}

const RankView* RunView::FindRank(int64_t number) const {
  for (const RankView& rank : ranks) {
    if (rank.number == number) return &rank;
  }
  return nullptr;
}

const TaskView* RunView::Find(Phase phase, const std::string& name) const {
  for (const RankView& rank : ranks) {
    for (const TaskView& task : rank.tasks) {
      if (task.phase == phase && task.name == name) return &task;
    }
  }
  return nullptr;
}

RunView ViewRun(const Plan& plan, RunState run, const RunReport& report, const ExecutionLog& log,
                LiveRun live, WallTime now) {
  return Viewer(plan, std::move(run), std::move(live), now).View(report, log);
}

}  // namespace muster::plan
