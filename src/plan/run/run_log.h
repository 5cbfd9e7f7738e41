#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "core/json.h"
#include "core/mutex.h"
#include "muster/env.h"
#include "muster/runs.h"
#include "muster/store.h"
#include "plan/compile/machine_data.h"
#include "plan/compile/state_table.h"
#include "plan/model/plan.h"

namespace muster::states {
struct Event;
}

namespace muster::plan {

enum class AttemptStatus { kRunning, kSucceeded, kFailed, kTimedOut, kStopped };
std::string NameOf(AttemptStatus status);  // "timed_out"

// One call of a task's first state.
struct TaskAttempt {
  WallTime start{};
  std::optional<WallTime> end = {};
  AttemptStatus status = AttemptStatus::kRunning;
  CaughtError failure = {};                    // of one that failed or timed out
  std::optional<WallTime> backoff_until = {};  // of a failed one that is retried
};

struct TaskLogLine {
  enum class Level { kInfo, kError };

  WallTime at{};
  Level level = Level::kInfo;
  std::string text;
};
std::string NameOf(TaskLogLine::Level level);  // "info"

// The progress of one task in an execution.
struct TaskLog {
  std::string first_state = {};               // by name
  PartState state = PartState::kWaiting;      // never kStopped: see ExecutionLog
  std::optional<WallTime> start = {};         // none: not begun, or completed by an earlier attempt
  std::optional<WallTime> stop = {};          // of one that was begun and has ended
  Json result = {};                           // once it has succeeded; null: too large to be stored
  std::optional<CaughtError> failure = {};    // once it has failed
  std::vector<TaskAttempt> attempts = {};     // oldest first
  int64_t failed_calls = 0;                   // of its first state
  std::optional<WallTime> failed_at = {};     // if the last attempt failed and no other has begun
  std::shared_ptr<const Json> asked = {};     // the parameters of the last attempt
  std::shared_ptr<const Json> answered = {};  // its first state's result; null: none yet
  std::vector<TaskLogLine> lines = {};        // the latest 1,000 events
};

// The progress of a rank as a whole in an execution.
struct RankLog {
  bool done = false;
  Json reconciled = {};                          // the counts; null: none
  std::optional<CaughtError> unreconciled = {};  // the reconciliation has failed
};

// What the history of one attempt of a run shows, task by task. Tasks that were running when the
// execution ended stay kRunning: the history has no event for that.
struct ExecutionLog {
  Json input = {};  // of the execution; null: it has not begun
  std::map<std::tuple<int64_t, Phase, std::string>, TaskLog> tasks = {};  // by rank, phase and name
  std::map<int64_t, RankLog> ranks = {};

  // Null: the execution's states have no such task or rank.
  const TaskLog* Find(int64_t rank, Phase phase, const std::string& task) const;
  const RankLog* Find(int64_t rank) const;
};

// A plan and its states, compiled once for each profile that is used. Thread-safe.
class PlanWithStates {
 public:
  explicit PlanWithStates(Plan plan) : plan_(std::move(plan)) {}

  const Plan& operator*() const { return plan_; }
  const Plan* operator->() const { return &plan_; }

  // kInvalid: no such profile.
  Result<StateTable> StatesOf(const std::string& profile) const;

 private:
  const Plan plan_;
  mutable Mutex mutex_;
  mutable std::map<std::string, StateTable> states_ GUARDED_BY(mutex_);  // by profile
};

// The states of an execution: the table stored with it or, if an older version started it without
// one, that of the run's plan. Empty: neither exists.
Result<StateTable> ReadStatesOf(store::Store& store, const std::string& execution,
                                const std::string& profile, const PlanWithStates* pinned);

// The only reader of histories: all reports on runs use its result. The log of an execution that
// does not exist is empty: its process may have died before starting it.
Result<ExecutionLog> ReadLog(store::Store& store, const std::string& execution,
                             const std::string& profile, const PlanWithStates* pinned);

// The same from events that were read already.
ExecutionLog MakeLog(const StateTable& states, const std::vector<states::Event>& events);

}  // namespace muster::plan
