#include "task/aws/aws_jobs.h"

namespace muster::task {
namespace {

constexpr AwsNaming kNaming{"StepFunctions", "AWSStepFunctions", "AWSStepFunctionsException"};

const AwsService& StepFunctions() { return *FindAwsService("sfn"); }

// "arn:…:stateMachine:NAME" and an execution's name make the execution's ARN.
std::string ExecutionArn(std::string machine, const std::string& name) {
  constexpr std::string_view kMachine = ":stateMachine:";
  const size_t at = machine.find(kMachine);
  if (at == std::string::npos) return {};
  machine.replace(at, kMachine.size(), ":execution:");
  return machine + ":" + name;
}

Json Parsed(const Json& text) {
  if (!text.is_string()) return text;
  Json value = Json::parse(text.get_ref<const std::string&>(), nullptr, false);
  return value.is_discarded() ? text : value;
}

}  // namespace

states::TaskOutcome StartExecution(AwsCalls& calls, const states::TaskCall& call, bool wait,
                                   std::chrono::milliseconds poll_after, std::stop_token stop) {
  Json parameters = call.input;
  if (!parameters.is_object() || !parameters.contains("StateMachineArn") ||
      !parameters["StateMachineArn"].is_string()) {
    return states::TaskFailure{"States.Runtime",
                               "states:startExecution needs the parameter StateMachineArn"};
  }
  if (parameters.contains("Input") && !parameters["Input"].is_string()) {
    parameters["Input"] = ToJsonText(parameters["Input"]);
  }
  // A name derived from the token makes a repeat harmless.
  const bool named_here = !parameters.contains("Name");
  if (named_here) parameters["Name"] = UuidOf(call.token);
  auto reply = calls.Call(StepFunctions(), "StartExecution", parameters, kNaming, call.token, stop);
  if (!reply && IsPassingFailure(reply.error())) {
    reply = calls.Call(StepFunctions(), "StartExecution", parameters, kNaming, call.token, stop);
  }
  Json result;
  if (reply) {
    result = reply->body;
    AddSdkMetadata(result, reply->http);
  } else {
    // An execution of this name has ended: an earlier try started it.
    if (!named_here || reply.error().error != "StepFunctions.ExecutionAlreadyExistsException") {
      return std::move(reply).error();
    }
    result = {{"ExecutionArn", ExecutionArn(parameters["StateMachineArn"], parameters["Name"])}};
  }
  if (!wait) return states::TaskSuccess{std::move(result)};
  return states::TaskPending{{{"ExecutionArn", result["ExecutionArn"]}}, poll_after};
}

states::TaskOutcome PollExecution(AwsCalls& calls, const states::TaskCall& call, const Json& resume,
                                  bool parse, std::chrono::milliseconds poll_after,
                                  std::stop_token stop) {
  auto reply = calls.Call(StepFunctions(), "DescribeExecution",
                          {{"ExecutionArn", resume["ExecutionArn"]}}, kNaming, call.token, stop);
  if (!reply) {
    if (IsPassingFailure(reply.error())) return states::TaskPending{resume, poll_after};
    return std::move(reply).error();
  }
  Json& execution = reply->body;
  const std::string status = execution.value("Status", "");
  if (status == "RUNNING" || status == "PENDING_REDRIVE")
    return states::TaskPending{resume, poll_after};
  if (parse) {
    for (const char* name : {"Input", "Output"}) {
      if (execution.contains(name)) execution[name] = Parsed(execution[name]);
    }
  }
  if (status == "SUCCEEDED") return states::TaskSuccess{std::move(execution)};
  return states::TaskFailure{"States.TaskFailed", ToJsonText(execution)};
}

void StopExecution(AwsCalls& calls, const Json& resume, std::stop_token stop) {
  // Best effort: the task has ended.
  (void)calls.Call(StepFunctions(), "StopExecution", {{"ExecutionArn", resume["ExecutionArn"]}},
                   kNaming, "", std::move(stop));
}

}  // namespace muster::task
