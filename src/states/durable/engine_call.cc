// Calls of executors, and answers that come by a token.

#include <algorithm>
#include <utility>

#include "core/backoff.h"
#include "core/guard.h"
#include "core/json.h"
#include "core/planted_bug.h"
#include "states/durable/callbacks.h"
#include "states/durable/engine.h"
#include "states/run/runner.h"

namespace muster::states {
namespace {

constexpr std::chrono::hours kLongestCallbackPoll{1};
constexpr milliseconds kLookEvery{1'000};

}  // namespace

Driver::CallContext::CallContext(Driver& driver, Drive& drive, std::stop_token stop)
    : driver_(driver),
      drive_(drive),
      stop_(std::move(stop)),
      renewed_(driver.env_.MonoNow()),
      looked_(renewed_) {}

bool Driver::CallContext::KeepAlive() {
  if (stop_.stop_requested()) stopped_ = true;
  if (stopped_ || lost_) return false;
  const auto& task = drive_.flow().task;
  const bool late = task && task->deadline && driver_.env_.WallNow() >= *task->deadline;
  if (late || driver_.TimedOut(drive_)) return false;
  const MonoTime now = driver_.env_.MonoNow();
  if (now - renewed_ >= driver_.options_.lease / 3) {
    renewed_ = now;
    lost_ = !drive_.holder.Renew(driver_.options_.lease).has_value();
  }
  // A renewal would notice a stop too, but only after a third of a lease.
  if (!lost_ && now - looked_ >= kLookEvery) {
    looked_ = now;
    lost_ = !driver_.IsWanted(drive_.record());
  }
  return !lost_;
}

TaskExecutor* Driver::ExecutorFor(const std::string& resource) const {
  for (TaskExecutor* executor : executors_) {
    if (executor->Runs(resource)) return executor;
  }
  return nullptr;
}

TaskOutcome Driver::Ask(Drive& drive, TaskExecutor* executor, const TaskCall& call,
                        CallContext& context) {
  const TaskProgress& task = *drive.flow().task;
  if (executor == nullptr)
    return TaskFailure{kRuntime, "no executor runs the resource '" + task.resource + "'"};
  auto answered = Guarded("the executor of '" + task.resource + "'", [&]() -> Result<TaskOutcome> {
    return task.pending ? executor->Poll(call, task.resume, context)
                        : executor->Start(call, context);
  });
  if (answered) return *std::move(answered);
  return TaskFailure{kRuntime, answered.error().message};
}

Status Driver::Call(Drive& drive, std::stop_token stop) {
  Flow& flow = drive.flow();
  Interpreter& interpreter = *drive.interpreter;
  TaskExecutor* executor = ExecutorFor(flow.task->resource);
  CallContext context(*this, drive, std::move(stop));
  if (flow.task->purpose == TaskProgress::Purpose::kWriteResults)
    MUSTER_TRY(interpreter.FillResults(flow, ResultsOf(drive)));
  const TaskCall call =
      CallOf(flow, interpreter.StateOf(flow), drive.record().info, env_.WallNow());
  const auto is_late = [&] {
    return flow.task->deadline && env_.WallNow() >= *flow.task->deadline;
  };
  TaskOutcome outcome = TaskFailure{kTimeout, {}};
  if (!is_late()) outcome = Ask(drive, executor, call, context);
  if (context.lost()) return Error{Code::kLeaseLost, "another process has this execution"};
  const bool late = is_late();
  const bool succeeded = std::holds_alternative<TaskSuccess>(outcome);
  if (context.stopped() && !late && !succeeded) {
    // Interrupted by this process: the next process to claim the flow repeats the call.
    drive.due = store::Due::AtOnce();
    drive.release = true;
    drive.next = Next::kRest;
    return Commit(drive);
  }
  if (TimedOut(drive)) {
    TimeOut(drive);
  } else if (late && !succeeded) {
    const auto* pending = std::get_if<TaskPending>(&outcome);
    if (executor != nullptr && (pending != nullptr || flow.task->pending)) {
      executor->Cancel(call, pending != nullptr ? pending->resume : flow.task->resume, context);
    }
    interpreter.TaskTimedOut(flow, false);
  } else {
    Accept(drive, std::move(outcome));
  }
  interpreter.Run(flow);
  Decide(drive);
  drive.deferred = PLANTED_BUG(answers_are_deferred);
  return Commit(drive);
}

// Gives the flow the outcome of its call.
void Driver::Accept(Drive& drive, TaskOutcome outcome) {
  Flow& flow = drive.flow();
  Interpreter& interpreter = *drive.interpreter;
  if (auto* failure = std::get_if<TaskFailure>(&outcome)) {
    return interpreter.TaskFailed(
        flow, {.error = std::move(failure->error), .cause = std::move(failure->cause)});
  }
  if (auto* pending = std::get_if<TaskPending>(&outcome)) {
    if (!flow.task->pending) interpreter.TaskSubmitted(flow, pending->resume);
    flow.task->pending = true;
    flow.task->resume = std::move(pending->resume);
    flow.due = env_.WallNow() + std::max(milliseconds(1), pending->poll_after);
    return;
  }
  Json& output = std::get<TaskSuccess>(outcome).output;
  const bool waits_for_token = flow.task->resource.ends_with(".waitForTaskToken") &&
                               flow.task->purpose == TaskProgress::Purpose::kTask;
  if (waits_for_token || !flow.task->pending) interpreter.TaskSubmitted(flow, output);
  if (!waits_for_token) return interpreter.TaskSucceeded(flow, std::move(output));
  flow.wants = Wants::kCallback;
  flow.due = flow.task->deadline;
  drive.record().poll = milliseconds(0);
  if (flow.task->heartbeat_s) {
    const WallTime beat = env_.WallNow() + std::chrono::seconds(*flow.task->heartbeat_s);
    if (!flow.due || beat < *flow.due) flow.due = beat;
  }
}

// A crash or an outage may prevent the check after the commit, so the flow also polls.
std::optional<WallTime> Driver::NextCallbackPoll(FlowRecord& record, WallTime now) const {
  const std::optional<WallTime> due = record.flow.due;
  const Backoff::Pauses polls{
      .first = options_.lease,
      .longest = std::max<milliseconds>(options_.lease, kLongestCallbackPoll)};
  record.poll = polls.Next(record.poll);
  if (PLANTED_BUG(callbacks_are_not_looked_for)) return due;
  return due && *due <= now + record.poll ? *due : now + record.poll;
}

// The answer may have come before this record said that it waits.
Status Driver::LookForCallback(Drive& drive) {
  drive.next = Next::kRest;
  if (PLANTED_BUG(callbacks_are_not_looked_for)) return {};
  const Flow& flow = drive.flow();
  MUSTER_ASSIGN(auto stored, store_.Get(kCallbackKind, flow.task->token));
  if (!stored) return {};
  // Due at once: its next holder takes the answer.
  store::Record next = drive.record().record;
  const store::Change change = store::Change::Put(next, store::Due::AtOnce(), true);
  MUSTER_TRY(store_.Write({&change, 1}));
  return {};
}

Result<bool> Driver::TakeCallback(Drive& drive) {
  Flow& flow = drive.flow();
  const std::string token = flow.task->token;
  MUSTER_ASSIGN(auto answer, FindAnswer(store_, token));
  if (answer) {
    if (answer->output) {
      drive.interpreter->TaskSucceeded(flow, *std::move(answer->output));
    } else {
      drive.interpreter->TaskFailed(
          flow, {.error = std::move(answer->error), .cause = std::move(answer->cause)});
    }
    return true;
  }
  const WallTime now = env_.WallNow();
  if (flow.task->deadline && now >= *flow.task->deadline) {
    drive.interpreter->TaskTimedOut(flow, false);
    return true;
  }
  if (flow.due && now >= *flow.due && flow.task->heartbeat_s) {
    MUSTER_ASSIGN(const auto last, FindBeat(store_, token));
    const WallTime next = last.value_or(WallTime{}) + std::chrono::seconds(*flow.task->heartbeat_s);
    if (next <= now) {
      drive.interpreter->TaskTimedOut(flow, true);
      return true;
    }
    flow.due = flow.task->deadline && *flow.task->deadline < next ? *flow.task->deadline : next;
  }
  return false;
}

}  // namespace muster::states
