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

#include "muster/env.h"
#include "muster/json.h"

namespace muster {

// One call that a Task state makes.
struct TaskCall {
  std::string resource;  // as the definition says: "arn:aws:states:::glue:startJobRun.sync"
  Json input;            // Parameters or Arguments, evaluated
  Json credentials;      // Credentials, evaluated; null: none

  // Names this call, and is the same whenever it is repeated because its outcome is unknown:
  // execution / branch path / entry / retry count. An executor that can hand it to its service as
  // an idempotency token, or find by it what an earlier try has started, does so.
  std::string token;

  std::string execution;  // the name of the execution
  std::string state;      // the name of the state

  // What is left of TimeoutSeconds and the whole of HeartbeatSeconds; none: no limit.
  std::optional<std::chrono::milliseconds> timeout = {};
  std::optional<std::chrono::milliseconds> heartbeat = {};

  // Where `input` has references to secrets, ${env:NAME} or ${file:PATH}, that the definition
  // itself has written: by JSON pointer ("/Headers/Authorization"), the text as the definition has
  // it, in pieces between which data was filled in. All other references came with data, and an
  // executor never resolves those: a caller who may give a machine its input may not read our
  // files.
  std::map<std::string, std::vector<std::string>> references = {};
};

// The call is done, with this as the task's result.
struct TaskSuccess {
  Json output;
};

// The call failed: an error name as AWS gives it ("Glue.ConcurrentRunsExceededException",
// "States.TaskFailed", …) and what a person should know.
struct TaskFailure {
  std::string error;
  std::string cause;
};

// The call has started something that goes on elsewhere, to be asked about again by Poll after the
// delay. `resume` (the id of a job run) is in the store before anybody waits, so that another
// process can go on from it. Nobody's thread is held meanwhile.
struct TaskPending {
  Json resume;
  std::chrono::milliseconds poll_after{1'000};
};

using TaskOutcome = std::variant<TaskSuccess, TaskFailure, TaskPending>;

// What an executor may use while it works.
class TaskContext {
 public:
  virtual ~TaskContext() = default;

  virtual Env& env() = 0;

  // To be called every few seconds by an executor that blocks: it keeps the execution ours. False:
  // stop at once, what comes of the call is not wanted any more (it timed out, the execution was
  // stopped, another process has taken it over, this process is to end).
  virtual bool KeepAlive() = 0;

  // Requested under the same conditions, as far as they are known without asking the store.
  virtual std::stop_token stop() const = 0;

  // Tells those who watch how many rows the call has dealt with so far. From any thread, as often
  // as a page of rows is done.
  virtual void Progress(int64_t /*rows*/) {}

  // Reports what the call waits for, such as a lock that another session holds; empty: for
  // nothing any more. From any thread.
  virtual void WaitsFor(const std::string& /*what*/) {}
};

// Makes the calls of Task states. Safe to use from any thread.
//
// A call may be made again with the same token: after a crash nobody knows whether it went
// through. Failures are told as a TaskFailure; nothing is thrown. Every wait inside is bounded.
class TaskExecutor {
 public:
  virtual ~TaskExecutor() = default;

  // Whether it knows the resource. The first executor that does gets the call.
  virtual bool Runs(std::string_view resource) const = 0;

  // Makes the call.
  virtual TaskOutcome Start(const TaskCall& call, TaskContext& context) = 0;

  // Asks what became of a call that was pending.
  virtual TaskOutcome Poll(const TaskCall& call, const Json& resume, TaskContext& context) = 0;

  // Ends what a pending call has started, as far as that is possible: the task timed out or the
  // execution was stopped. A second cancel of the same call is fine.
  virtual void Cancel(const TaskCall& call, const Json& resume, TaskContext& context) = 0;
};

}  // namespace muster
