#pragma once

#include <chrono>
#include <stop_token>
#include <string>

#include "muster/states.h"
#include "task/aws/aws_calls.h"

namespace muster::task {

// Jobs that continue in AWS after the call: a run of a Glue job, or an execution of a state
// machine. Each is found again by the call's token. `wait`: the task ends when the job ends, not
// when it has started.

states::TaskOutcome StartGlueJob(AwsCalls& calls, const states::TaskCall& call, bool wait,
                                 std::chrono::milliseconds poll_after, std::stop_token stop);
states::TaskOutcome PollGlueJob(AwsCalls& calls, const states::TaskCall& call, const Json& resume,
                                std::chrono::milliseconds poll_after, std::stop_token stop);
void StopGlueJob(AwsCalls& calls, const Json& resume, std::stop_token stop);

// `parse`: the result has the execution's output as JSON, not as text (.sync:2).
states::TaskOutcome StartExecution(AwsCalls& calls, const states::TaskCall& call, bool wait,
                                   std::chrono::milliseconds poll_after, std::stop_token stop);
states::TaskOutcome PollExecution(AwsCalls& calls, const states::TaskCall& call, const Json& resume,
                                  bool parse, std::chrono::milliseconds poll_after,
                                  std::stop_token stop);
void StopExecution(AwsCalls& calls, const Json& resume, std::stop_token stop);

// lambda:invoke, or a function's ARN as the resource.
states::TaskOutcome InvokeLambda(AwsCalls& calls, const states::TaskCall& call,
                                 std::stop_token stop);
bool IsLambdaFunction(std::string_view resource);

}  // namespace muster::task
