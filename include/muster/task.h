#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "muster/env.h"
#include "muster/json.h"
#include "muster/result.h"

namespace muster {

// The status of a run of a plan, in the migration's status table and in everything that reports it.
enum class RunStatus {
  kInProgress,
  kCompleted,
  kFailed,
  kCancelled,
  kUnreadable,  // in lists only: the record is damaged, or a newer version wrote it
};

// "IN_PROGRESS", …
constexpr std::string_view NameOf(RunStatus status) {
  switch (status) {
    case RunStatus::kInProgress:
      return "IN_PROGRESS";
    case RunStatus::kCompleted:
      return "COMPLETED";
    case RunStatus::kFailed:
      return "FAILED";
    case RunStatus::kCancelled:
      return "CANCELLED";
    case RunStatus::kUnreadable:
      return "UNREADABLE";
  }
  return {};
}

// The phases of a rank of a plan.
enum class Phase { kExtract, kTransform };

// "extract", "transform"
constexpr std::string_view NameOf(Phase phase) {
  return phase == Phase::kExtract ? "extract" : "transform";
}

}  // namespace muster

namespace muster::states {

// The part of a plan that a call is made for.
struct PlanPart {
  int64_t rank = 0;
  std::optional<Phase> phase = {};  // none: the rank as a whole
  std::string task = {};
  bool does_task = false;  // it does the task, or begins it; else it looks at one or reports it
};

// A call made by a Task state.
struct TaskCall {
  std::string resource;  // from the definition: "arn:aws:states:::glue:startJobRun.sync"
  Json input;            // Parameters or Arguments, evaluated
  Json credentials;      // Credentials, evaluated; null: none

  // Identifies this call, and is the same when it is repeated because of an unknown outcome:
  // execution / branch path / entry / retry count. An executor passes it to its service as an
  // idempotency token, or uses it to find what an earlier try has started, if it can.
  std::string token;

  std::string execution;  // the name of the execution
  std::string state;      // the name of the state

  std::optional<PlanPart> part = {};  // none: it is for no part of a plan

  // What is left of TimeoutSeconds, and all of HeartbeatSeconds; none: no limit.
  std::optional<std::chrono::milliseconds> timeout = {};
  std::optional<std::chrono::milliseconds> heartbeat = {};

  // Secret references, ${env:NAME} or ${file:PATH}, in `input` that come from the definition
  // itself: by JSON pointer ("/Headers/Authorization"), the text as in the definition, in pieces
  // between which data was filled in. All other references came with data, and an executor never
  // resolves those: a caller who may provide a machine's input may not read our files.
  std::map<std::string, std::vector<std::string>> references = {};
};

// The call succeeded with this result.
struct TaskSuccess {
  Json output;
};

// The call failed: an error name as in AWS ("Glue.ConcurrentRunsExceededException",
// "States.TaskFailed", …) and a cause for people.
struct TaskFailure {
  std::string error;
  std::string cause;
};

// The call has started something that continues elsewhere; Poll asks again after the delay.
// `resume` (the id of a job run) is stored before anything waits, so that another process can
// continue from it. No thread is held meanwhile.
struct TaskPending {
  Json resume;
  std::chrono::milliseconds poll_after{1'000};
};

using TaskOutcome = std::variant<TaskSuccess, TaskFailure, TaskPending>;

// What an executor may use during a call.
class TaskContext {
 public:
  virtual ~TaskContext() = default;

  virtual Env& env() = 0;

  // A blocking executor must call it every few seconds to keep the execution ours. False: stop at
  // once, the result is no longer wanted (it timed out, the execution was stopped, another process
  // has taken over, this process is shutting down).
  virtual bool KeepAlive() = 0;

  // Requested under the same conditions, as far as known without asking the store.
  virtual std::stop_token stop() const = 0;

  // Reports how many rows the call has processed so far. From any thread, e.g. after each page of
  // rows.
  virtual void Progress(int64_t /*rows*/) {}

  // Reports what the call waits for, such as a lock held by another session; empty: nothing any
  // more. From any thread.
  virtual void WaitsFor(const std::string& /*what*/) {}
};

// Makes the calls of Task states. Thread-safe.
//
// A call may be repeated with the same token: after a crash its outcome is unknown. Failures are
// returned as a TaskFailure; nothing is thrown. Every wait inside is bounded.
class TaskExecutor {
 public:
  virtual ~TaskExecutor() = default;

  // Whether it handles the resource. The first executor that does gets the call.
  virtual bool Runs(std::string_view resource) const = 0;

  // Makes the call.
  virtual TaskOutcome Start(const TaskCall& call, TaskContext& context) = 0;

  // Asks for the outcome of a pending call.
  virtual TaskOutcome Poll(const TaskCall& call, const Json& resume, TaskContext& context) = 0;

  // Cancels what a pending call has started, if possible: the task timed out or the execution was
  // stopped. Idempotent.
  virtual void Cancel(const TaskCall& call, const Json& resume, TaskContext& context) = 0;

  // This process begins to drive a run of a plan, by its id, and ceases to, whether the run has
  // ended or not. For what an executor does for a run beside its calls, such as delivering
  // notifications. A failed BeginRun fails RunEngine::Drive before any call is made; a failed
  // EndRun fails it after the last one.
  virtual Status BeginRun(const std::string& /*run*/) { return {}; }
  virtual Status EndRun(const std::string& /*run*/) { return {}; }
};

}  // namespace muster::states
