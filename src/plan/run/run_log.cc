#include "plan/run/run_log.h"

#include "core/enum_names.h"
#include "states/states.h"

namespace muster::plan {

using states::Event;
using states::EventKind;

namespace {

constexpr size_t kMaxLines = 1'000;

bool IsCallFailure(EventKind kind) {
  return kind == EventKind::kCallFailed || kind == EventKind::kCallTimedOut;
}

bool Enters(EventKind kind) {
  return kind == EventKind::kTaskEntered || kind == EventKind::kStateEntered;
}

bool IsFailure(EventKind kind, const Event& event) {
  return IsCallFailure(kind) || !event.error.empty();
}

void AddLine(const Event& event, EventKind kind, const std::string& state, TaskLog& task) {
  std::string text = state + ": " + event.type;
  if (!event.error.empty())
    text += ": " + event.error + (event.cause.empty() ? "" : ": " + event.cause);
  const auto level =
      IsFailure(kind, event) ? TaskLogLine::Level::kError : TaskLogLine::Level::kInfo;
  task.lines.push_back({event.time, level, std::move(text)});
  if (task.lines.size() > kMaxLines) task.lines.erase(task.lines.begin());
}

void BeginAttempt(const Event& event, TaskLog& task) {
  if (!task.attempts.empty()) {
    TaskAttempt& before = task.attempts.back();
    if (!before.end) before.end = event.time;
    if (before.status == AttemptStatus::kRunning) before.status = AttemptStatus::kFailed;
    before.backoff_until = event.time;
  }
  task.attempts.push_back({.start = event.time});
  task.asked = event.payload;
}

void FailAttempt(const Event& event, EventKind kind, TaskLog& task) {
  if (task.attempts.empty()) return;
  TaskAttempt& attempt = task.attempts.back();
  attempt.end = event.time;
  attempt.status =
      kind == EventKind::kCallTimedOut ? AttemptStatus::kTimedOut : AttemptStatus::kFailed;
  attempt.failure = {event.error, event.cause};
}

// Reads a history in one pass, and assigns states to tasks.
class LogReader {
 public:
  explicit LogReader(const StateTable& states) {
    for (const auto& [name, state] : states) Place(name, state);
  }

  ExecutionLog Read(const std::vector<Event>& events) {
    for (const Event& event : events) Add(event);
    return std::move(log_);
  }

 private:
  struct Part {
    const PlanState* state = nullptr;
    RankLog* rank = nullptr;
    TaskLog* task = nullptr;  // null: it belongs to the rank
  };

  void Place(const std::string& name, const PlanState& state) {
    Part& part = parts_[name];
    part.state = &state;
    part.rank = &log_.ranks[state.rank];
    if (!state.phase) return;
    part.task = &log_.tasks[{state.rank, *state.phase, state.task}];
    // A task completed by an earlier attempt has only its last state.
    if (state.Begins() || (state.Ends() && part.task->first_state.empty()))
      part.task->first_state = name;
  }

  void Add(const Event& event) {
    const EventKind kind = event.Kind();
    if (kind == EventKind::kExecutionStarted && event.payload && log_.input.is_null())
      log_.input = *event.payload;
    const std::string& name = StateOf(event, kind);
    if (kind == EventKind::kCallSucceeded || IsCallFailure(kind)) last_call_[name] = &event;
    const auto found = parts_.find(name);
    if (found == parts_.end()) return;
    const Part& part = found->second;
    if (part.task != nullptr) {
      AddToTask(event, kind, name, part);
    } else if (kind == EventKind::kStateExited) {
      AddToRank(event, name, part);
    }
  }

  // Only events that enter or leave a state name it; the others refer to the event before them.
  const std::string& StateOf(const Event& event, EventKind kind) {
    std::string& state = state_of_[event.id];
    if (Enters(kind) || kind == EventKind::kStateExited) {
      state = event.name;
    } else if (const auto before = state_of_.find(event.previous); before != state_of_.end()) {
      state = before->second;
    }
    return state;
  }

  void AddToTask(const Event& event, EventKind kind, const std::string& name, const Part& part) {
    TaskLog& task = *part.task;
    AddLine(event, kind, name, task);
    // A failed notification is not a failure of the task.
    if (part.state->role == StateRole::kNotify) {
      if (Enters(kind)) Fail(event, part);
      return;
    }
    if (part.state->Begins()) AddToFirst(event, kind, task);
    if (IsFailure(kind, event)) FailAttempt(event, kind, task);
    if (kind == EventKind::kStateExited && part.state->Ends()) End(event, name, part);
  }

  // An event of the task's first state. A task completed by an earlier attempt is a Pass, which is
  // skipped.
  static void AddToFirst(const Event& event, EventKind kind, TaskLog& task) {
    if (kind == EventKind::kTaskEntered) {
      task.state = PartState::kRunning;
      if (!task.start) task.start = event.time;
      task.answered.reset();
      task.failed_at.reset();
    } else if (kind == EventKind::kCallScheduled) {
      BeginAttempt(event, task);
      task.failed_at.reset();
    } else if (kind == EventKind::kCallSucceeded) {
      task.answered = event.payload ? event.payload : states::MakeValue(Json());
      task.failed_at.reset();
    } else if (IsCallFailure(kind)) {
      ++task.failed_calls;
      task.failed_at = event.time;
    }
  }

  // Its failure was caught, and people are notified.
  void Fail(const Event& event, const Part& part) {
    TaskLog& task = *part.task;
    task.state = PartState::kFailed;
    task.stop = event.time;
    task.failed_at.reset();
    task.failure = ErrorIn(event.payload ? ResultIn(*event.payload, part.state->task)
                                         : AnswerOf(task.first_state));
    if (task.attempts.empty() || task.attempts.back().end) return;
    task.attempts.back().end = event.time;
    task.attempts.back().status = AttemptStatus::kFailed;
  }

  void End(const Event& event, const std::string& name, const Part& part) {
    TaskLog& task = *part.task;
    Json result = event.payload ? ResultIn(*event.payload, part.state->task) : AnswerOf(name);
    // A failure is recorded when the next state is entered.
    if (IsError(result)) return;
    task.state = PartState::kSucceeded;
    task.result = std::move(result);
    if (task.start) task.stop = event.time;
    if (task.attempts.empty()) return;
    TaskAttempt& last = task.attempts.back();
    last = {.start = last.start, .end = event.time, .status = AttemptStatus::kSucceeded};
  }

  void AddToRank(const Event& event, const std::string& name, const Part& part) {
    if (part.state->role == StateRole::kRankDone) part.rank->done = true;
    if (part.state->role != StateRole::kReconcile) return;
    if (event.payload) {
      Reconcile(ReconciledIn(*event.payload), UnreconciledIn(*event.payload), *part.rank);
    } else {
      const Json answer = AnswerOf(name);
      Reconcile(answer, answer, *part.rank);
    }
  }

  static void Reconcile(const Json& counts, const Json& error, RankLog& rank) {
    if (counts.is_object() && !IsError(counts)) rank.reconciled = counts;
    if (IsError(error)) rank.unreconciled = ErrorIn(error);
  }

  // The result or error of a state's last call; null: unknown. Histories omit large outputs, and a
  // state's output has those of all tasks before it.
  Json AnswerOf(const std::string& state) const {
    const auto last = last_call_.find(state);
    if (last == last_call_.end()) return {};
    const Event& event = *last->second;
    if (IsCallFailure(event.Kind())) return ToJson(CaughtError{event.error, event.cause});
    return event.payload ? *event.payload : Json();
  }

  ExecutionLog log_;
  std::map<std::string, Part> parts_;              // by state
  std::map<int64_t, std::string> state_of_;        // by event
  std::map<std::string, const Event*> last_call_;  // the end of its last call, by state
};

}  // namespace

std::string_view NameOf(PartState state) {
  static constexpr EnumNames<PartState, 5> kNames{{{
      {PartState::kWaiting, "WAITING"},
      {PartState::kRunning, "RUNNING"},
      {PartState::kSucceeded, "SUCCEEDED"},
      {PartState::kFailed, "FAILED"},
      {PartState::kStopped, "STOPPED"},
  }}};
  return kNames.NameOf(state);
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

std::string NameOf(TaskLogLine::Level level) {
  return level == TaskLogLine::Level::kError ? "error" : "info";
}

const TaskLog* ExecutionLog::Find(int64_t rank, Phase phase, const std::string& task) const {
  const auto found = tasks.find({rank, phase, task});
  return found == tasks.end() ? nullptr : &found->second;
}

const RankLog* ExecutionLog::Find(int64_t rank) const {
  const auto found = ranks.find(rank);
  return found == ranks.end() ? nullptr : &found->second;
}

Result<StateTable> PlanWithStates::StatesOf(const std::string& profile) const {
  MUSTER_ASSIGN(const Profile* found, plan_.FindProfile(profile));
  const MutexLock lock(mutex_);
  const auto known = states_.find(profile);
  if (known != states_.end()) return known->second;
  return states_[profile] = plan::StatesOf(plan_, *found);
}

Result<StateTable> ReadStatesOf(store::Store& store, const std::string& execution,
                                const std::string& profile, const PlanWithStates* pinned) {
  MUSTER_ASSIGN(std::optional<StateTable> states, ReadStates(store, execution));
  if (states) return *std::move(states);
  if (pinned == nullptr) return StateTable();
  return pinned->StatesOf(profile);
}

ExecutionLog MakeLog(const StateTable& states, const std::vector<Event>& events) {
  return LogReader(states).Read(events);
}

Result<ExecutionLog> ReadLog(store::Store& store, const std::string& execution,
                             const std::string& profile, const PlanWithStates* pinned) {
  MUSTER_ASSIGN(const StateTable states, ReadStatesOf(store, execution, profile, pinned));
  const auto events = states::ReadEvents(store, execution);
  if (!events && events.error().code == Code::kNotFound) return MakeLog(states, {});
  if (!events) return events.error();
  return MakeLog(states, *events);
}

}  // namespace muster::plan
