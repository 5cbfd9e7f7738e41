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

states::TaskOutcome WatchedExecutor::Report(const states::TaskCall& call,
                                            states::TaskOutcome outcome) {
  if (!call.part || !call.part->does_task) return outcome;
  if (const auto* success = std::get_if<states::TaskSuccess>(&outcome)) {
    progress_.Say(call.state + ": done" + RowsOf(success->output));
  } else if (const auto* failure = std::get_if<states::TaskFailure>(&outcome)) {
    progress_.Say(call.state + ": " + failure->error + ": " + failure->cause);
  }
  return outcome;
}

states::TaskOutcome WatchedExecutor::Start(const states::TaskCall& call,
                                           states::TaskContext& context) {
  return Report(call, ExecutorWrapper::Start(call, context));
}

states::TaskOutcome WatchedExecutor::Poll(const states::TaskCall& call, const Json& resume,
                                          states::TaskContext& context) {
  return Report(call, ExecutorWrapper::Poll(call, resume, context));
}

}  // namespace muster::cli
