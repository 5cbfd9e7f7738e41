#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "muster/env.h"
#include "muster/result.h"
#include "muster/store.h"
#include "muster/task.h"
#include "muster/version.h"

namespace muster::states {

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
