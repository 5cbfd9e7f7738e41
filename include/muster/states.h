#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "muster/env.h"
#include "muster/json.h"
#include "muster/result.h"
#include "muster/store.h"

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

}  // namespace muster

namespace muster::plan {

// The phases of a rank of a plan.
enum class Phase { kExtract, kTransform };

// "extract", "transform"
constexpr std::string_view NameOf(Phase phase) {
  return phase == Phase::kExtract ? "extract" : "transform";
}

}  // namespace muster::plan

namespace muster::states {

// The part of a plan that a call is made for.
struct PlanPart {
  int64_t rank = 0;
  std::optional<plan::Phase> phase = {};  // none: the rank as a whole
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

  // Makes the call. Only for resources that it runs, like the two below.
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

// Forwards each call to the first of several executors that runs its resource, of which there must
// be one: ask Runs before. The executors must outlive it. Derive, and override what differs.
class ExecutorWrapper : public TaskExecutor {
 public:
  explicit ExecutorWrapper(std::vector<TaskExecutor*> inner) : inner_(std::move(inner)) {}

  bool Runs(std::string_view resource) const override { return Find(resource) != nullptr; }
  TaskOutcome Start(const TaskCall& call, TaskContext& context) override {
    return Find(call.resource)->Start(call, context);
  }
  TaskOutcome Poll(const TaskCall& call, const Json& resume, TaskContext& context) override {
    return Find(call.resource)->Poll(call, resume, context);
  }
  void Cancel(const TaskCall& call, const Json& resume, TaskContext& context) override {
    Find(call.resource)->Cancel(call, resume, context);
  }
  Status BeginRun(const std::string& run) override {
    for (TaskExecutor* executor : inner_) MUSTER_TRY(executor->BeginRun(run));
    return {};
  }
  // All of them, even if one fails; the answer is the first failure.
  Status EndRun(const std::string& run) override {
    Status ended;
    for (TaskExecutor* executor : inner_) {
      Status one = executor->EndRun(run);
      if (ended) ended = std::move(one);
    }
    return ended;
  }

 private:
  TaskExecutor* Find(std::string_view resource) const {
    for (TaskExecutor* executor : inner_) {
      if (executor->Runs(resource)) return executor;
    }
    return nullptr;
  }

  const std::vector<TaskExecutor*> inner_;
};

// What to execute.
struct ExecutionRequest {
  std::string name;                   // 1 to 80 of A-Z a-z 0-9 - _ .
  std::string definition;             // Amazon States Language, as JSON text
  std::string origin = "definition";  // the definition's name for messages: its file
  std::string machine = "machine";    // the state machine's name, for $$.StateMachine.Name
  std::string input = "{}";           // JSON text
  std::string queue = {};             // empty: StatesOptions'
};

enum class ExecutionStatus {
  kRunning,
  kSucceeded,
  kFailed,
  kTimedOut,
  kAborted,
  kUnreadable,  // in lists only: `cause` says why
};

// As AWS names them: "RUNNING", "SUCCEEDED", "FAILED", "TIMED_OUT", "ABORTED"; "UNREADABLE".
MUSTER_EXPORT std::string_view NameOf(ExecutionStatus status);

// An execution as stored.
struct Execution {
  std::string name;
  std::string machine;
  ExecutionStatus status = ExecutionStatus::kRunning;
  std::string state;  // the state it is in, or ended in
  WallTime start{};
  std::optional<WallTime> stop = {};
  std::optional<WallTime> due = {};  // when it is next looked at, if it waits
  int64_t redrives = 0;
  std::string output;  // JSON text, once it has succeeded
  std::string error;
  std::string cause;
};

struct StatesOptions {
  std::string owner = "states";  // names the driving process for display; need not be unique
  std::string queue = "default";
  milliseconds lease{60'000};
  milliseconds max_lease{600'000};
  milliseconds idle_wait{1'000};  // polling interval without work
  int max_attempts = 5;           // processes that a call may crash before it fails
  int batch = 64;                 // most executions claimed at once
};

// Runs state machines durably on a store. An execution is a record with a due time; any number of
// processes and threads may drive executions, and one that disappears is replaced.
//
// - A call's start is stored before it is made, its result before the next state. After a crash a
//   call whose result was stored is not repeated; one with an unknown result is repeated with the
//   same token.
// - Waiting costs a due time, not a thread.
// - Branches and iterations are separate records: several processes may drive them.
//
// Thread-safe. Store, env and executors must outlive it.
class MUSTER_EXPORT States {
 public:
  States(store::Store& store, std::vector<TaskExecutor*> executors, StatesOptions options,
         Env& env);
  ~States();
  States(const States&) = delete;
  States& operator=(const States&) = delete;

  // Starts an execution. Idempotent; a different definition or input under an existing name is
  // kConflict. kInvalid lists every problem of the definition.
  Status Start(const ExecutionRequest& request);

  // One execution, or none.
  Result<std::optional<Execution>> Find(const std::string& name);

  // Executions in name order, after `after`.
  Result<std::vector<Execution>> List(const std::string& after, int limit);

  // The history as AWS shows it, branches and iterations included: a JSON array of events.
  Result<Json> History(const std::string& name);

  // Ends a running execution. kConflict: it has already ended.
  Status Stop(const std::string& name, const std::string& error, const std::string& cause);

  // Resumes an execution that failed, timed out or was stopped: what succeeded is kept, what did
  // not is run again. kConflict: it is running, has succeeded, or is too old (14 days).
  Status Redrive(const std::string& name);

  // Completes a call that waits for its token (".waitForTaskToken"). The first result counts;
  // kConflict: there already was one. kNotFound: no such token.
  Status SendTaskSuccess(const std::string& token, const std::string& output);
  Status SendTaskFailure(const std::string& token, const std::string& error,
                         const std::string& cause);
  Status SendTaskHeartbeat(const std::string& token);

  // Drives executions until a stop is requested or, unless `until_done` is empty, until the
  // execution of that name has ended: those in the options' queue, or in the named one's. Call it
  // from as many threads as calls may block at once.
  Status Work(const std::string& until_done, std::stop_token stop);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// All problems of a definition, each as "origin:line:column: reason". Empty: none.
MUSTER_EXPORT std::vector<std::string> CheckStates(std::string_view definition,
                                                   std::string_view origin, Env& env);

}  // namespace muster::states
