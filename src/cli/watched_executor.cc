#include "cli/watched_executor.h"

namespace muster::cli {
namespace {

std::string RowsOf(const Json& result) {
  for (const char* field : {"rows", "loaded"}) {
    if (result.is_object() && result.contains(field) && result[field].is_number_integer())
      return ", " + std::to_string(result[field].get<int64_t>()) + " rows";
  }
  return "";
}

}  // namespace

TaskOutcome WatchedExecutor::Report(const TaskCall& call, TaskOutcome outcome) {
  if (!call.part || !call.part->does_task) return outcome;
  if (const auto* success = std::get_if<TaskSuccess>(&outcome)) {
    progress_.Say(call.state + ": done" + RowsOf(success->output));
  } else if (const auto* failure = std::get_if<TaskFailure>(&outcome)) {
    progress_.Say(call.state + ": " + failure->error + ": " + failure->cause);
  }
  return outcome;
}

TaskOutcome WatchedExecutor::Start(const TaskCall& call, TaskContext& context) {
  return Report(call, ExecutorWrapper::Start(call, context));
}

TaskOutcome WatchedExecutor::Poll(const TaskCall& call, const Json& resume, TaskContext& context) {
  return Report(call, ExecutorWrapper::Poll(call, resume, context));
}

}  // namespace muster::cli
