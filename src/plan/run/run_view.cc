#include "plan/run/run_view.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "core/enum_names.h"
#include "core/json_fields.h"
#include "core/timestamp.h"
#include "plan/compile/history_states.h"
#include "plan/run/run_forecast.h"

namespace muster::plan {
namespace {

constexpr size_t kMaxLog = 1'000;

std::string RankWord(int64_t rank) { return "rank " + std::to_string(rank); }

WallTime TimeOf(const Json& event) {
  const auto time = ParseTimestamp(TextIn(event, "timestamp"));
  return time ? time->ToWallTime() : WallTime{};
}

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

// Of the last attempt of a task that no longer runs.
AttemptStatus LastStatus(TaskStatus task) {
  switch (task) {
    case TaskStatus::kSucceeded:
      return AttemptStatus::kSucceeded;
    case TaskStatus::kStopped:
      return AttemptStatus::kStopped;
    case TaskStatus::kFailed:
    case TaskStatus::kBackoff:
      return AttemptStatus::kFailed;
    case TaskStatus::kWaiting:
    case TaskStatus::kRunning:
      break;
  }
  return AttemptStatus::kRunning;
}

bool EndedBadly(const TaskAttempt& attempt) {
  return attempt.status == AttemptStatus::kFailed || attempt.status == AttemptStatus::kTimedOut;
}

class Viewer {
 public:
  Viewer(const Plan& plan, const StateTable& states, RunState run, LiveRun live, WallTime now)
      : plan_(plan), live_(std::move(live)), now_(now) {
    view_.run = std::move(run);
    for (const Rank& rank : plan.ranks) AddRank(rank);
    // Nothing moves from here on.
    for (const auto& [name, state] : states) {
      if (TaskView* task = FindTask(state)) parts_[name] = {&state, task};
    }
  }

  RunView View(const RunReport& report, const Json& history) {
    for (const Json& event : history) Add(event);
    for (const RankReport& rank : report.ranks) Take(rank);
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
    rules_[std::pair(phase, name)] = rules.retry;
    TaskView& task = rank.tasks.emplace_back();
    task.phase = phase;
    task.name = name;
    task.rank = rank.number;
    task.max_attempts = rules.retry.attempts + 1;
    return task;
  }

  struct Part {
    const PlanState* state = nullptr;
    TaskView* task = nullptr;
  };

  TaskView* FindTask(const PlanState& state) {
    for (RankView& rank : view_.ranks) {
      if (rank.number != state.rank) continue;
      for (TaskView& task : rank.tasks) {
        if (task.phase == state.phase && task.name == state.task) return &task;
      }
    }
    return nullptr;
  }

  void Add(const Json& event) {
    const std::string& name = history_states_.Of(event);
    const auto part = parts_.find(name);
    if (part == parts_.end()) return;
    Add(TextIn(event, "type"), DetailsOf(event), TimeOf(event), name, *part->second.state,
        *part->second.task);
  }

  void Add(const std::string& type, const Json& details, WallTime at, const std::string& state,
           const PlanState& role, TaskView& task) {
    const std::string error = TextIn(details, "error");
    const std::string cause = TextIn(details, "cause");
    const bool failure = !error.empty() || type.ends_with("Failed") || type.ends_with("TimedOut");
    std::string text = state + ": " + type;
    if (!error.empty()) text += ": " + error + (cause.empty() ? "" : ": " + cause);
    task.log.push_back({at, failure ? "error" : "info", std::move(text)});
    if (task.log.size() > kMaxLog) task.log.erase(task.log.begin());
    if (role.Begins() && type == "TaskScheduled") {
      if (!task.attempts.empty()) {
        TaskAttempt& before = task.attempts.back();
        if (!before.end) before.end = at;
        if (before.status == AttemptStatus::kRunning) before.status = AttemptStatus::kFailed;
        before.backoff_until = at;
      }
      task.attempts.push_back({.start = at});
      task.input = TextIn(details, "parameters");
      return;
    }
    if (type.ends_with("StateExited") && role.Ends()) {
      TakeResult(TextIn(details, "output"), task);
      return;
    }
    if (!failure || task.attempts.empty()) return;
    TaskAttempt& attempt = task.attempts.back();
    attempt.end = at;
    attempt.status = type.ends_with("TimedOut") ? AttemptStatus::kTimedOut : AttemptStatus::kFailed;
    attempt.error = error;
    attempt.cause = cause;
  }

  // What the task leaves, unless that is its error.
  static void TakeResult(const std::string& text, TaskView& task) {
    const Json output = Json::parse(text, nullptr, false);
    const Json& result = MemberIn(MemberIn(output, "results"), task.name);
    if (result.is_object() && !result.contains("Error")) task.output = ToJsonText(result);
  }

  void Take(const RankReport& report) {
    RankView& rank = view_.ranks[*plan_.FindRank(report.number)];
    rank.status = StatusOf(report.state);
    rank.reconciled = report.reconciled;
    rank.failure = report.failure;
    for (size_t i = 0; i < report.tasks.size(); ++i) Take(report.tasks[i], rank.tasks[i]);
  }

  void Take(const TaskReport& report, TaskView& task) {
    task.status = StatusOf(report.state);
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
    if (!task.attempts.empty()) Settle(task);
  }

  // What follows for a task that was begun, and for its last attempt.
  void Settle(TaskView& task) {
    TaskAttempt& last = task.attempts.back();
    if (task.status == TaskStatus::kRunning && EndedBadly(last)) {
      const RetryRule& rule = rules_.at(std::pair(task.phase, task.name));
      const double wait = static_cast<double>(rule.interval_s) *
                          std::pow(rule.backoff, static_cast<double>(task.attempts.size() - 1));
      task.status = TaskStatus::kBackoff;
      task.next_try = *last.end + std::chrono::milliseconds(static_cast<int64_t>(1000 * wait));
      last.backoff_until = task.next_try;
    }
    if (task.status == TaskStatus::kStopped) task.end = last.end ? last.end : view_.run.stop;
    if (task.status == TaskStatus::kRunning || last.end) return;
    last.end = task.end;
    last.status = LastStatus(task.status);
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
    if (rank.failure) return "its rows are not all there: " + rank.failure->cause;
    if (rank.status == TaskStatus::kFailed) return "a task of it has failed";
    if (rank.status == TaskStatus::kBackoff) return "a task of it waits to be tried again";
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
  std::map<std::pair<Phase, std::string>, RetryRule> rules_;
  HistoryStates history_states_;
  std::map<std::string, Part> parts_;  // by state
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

std::string NameOf(AttemptStatus status) {
  static constexpr EnumNames<AttemptStatus, 5> kNames{{{
      {AttemptStatus::kRunning, "running"},
      {AttemptStatus::kSucceeded, "succeeded"},
      {AttemptStatus::kFailed, "failed"},
      {AttemptStatus::kTimedOut, "timed_out"},
      {AttemptStatus::kStopped, "stopped"},
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

RunView ViewRun(const Plan& plan, const StateTable& states, RunState run, const RunReport& report,
                const Json& history, LiveRun live, WallTime now) {
  return Viewer(plan, states, std::move(run), std::move(live), now).View(report, history);
}

}  // namespace muster::plan
