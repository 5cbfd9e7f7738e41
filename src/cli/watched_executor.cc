#include "cli/watched_executor.h"

namespace muster::cli {
namespace {

// Whether a call is a task of a plan: to write the status or to tell of a failure is not.
bool IsTask(const TaskCall& call) {
  return call.resource == "muster:copy" || call.resource == "muster:transform" ||
         call.resource.find("startJobRun") != std::string::npos ||
         call.resource.find("startFlow") != std::string::npos;
}

std::string RowsOf(const Json& result) {
  for (const char* field : {"rows", "loaded"}) {
    if (result.is_object() && result.contains(field) && result[field].is_number_integer())
      return ", " + std::to_string(result[field].get<int64_t>()) + " rows";
  }
  return "";
}

}  // namespace

TaskExecutor* WatchedExecutor::Find(std::string_view resource) const {
  for (TaskExecutor* executor : executors_) {
    if (executor->Runs(resource)) return executor;
  }
  return nullptr;
}

TaskOutcome WatchedExecutor::Told(const TaskCall& call, TaskOutcome outcome) {
  if (!IsTask(call)) return outcome;
  if (const auto* success = std::get_if<TaskSuccess>(&outcome)) {
    progress_.Say(call.state + ": done" + RowsOf(success->output));
    progress_.Update(++done_);
  } else if (const auto* failure = std::get_if<TaskFailure>(&outcome)) {
    progress_.Say(call.state + ": " + failure->error + ": " + failure->cause);
  }
  return outcome;
}

TaskOutcome WatchedExecutor::Start(const TaskCall& call, TaskContext& context) {
  return Told(call, Find(call.resource)->Start(call, context));
}

TaskOutcome WatchedExecutor::Poll(const TaskCall& call, const Json& resume, TaskContext& context) {
  return Told(call, Find(call.resource)->Poll(call, resume, context));
}

void WatchedExecutor::Cancel(const TaskCall& call, const Json& resume, TaskContext& context) {
  Find(call.resource)->Cancel(call, resume, context);
}

}  // namespace muster::cli
