#pragma once

#include <chrono>
#include <memory>

#include "muster/env.h"
#include "muster/states.h"
#include "net/aws_credentials.h"

namespace muster::task {

// Calls AWS services as Step Functions does, with its names of parameters, results and errors:
//   arn:aws:states:::aws-sdk:SERVICE:ACTION      services with JSON 1.0, 1.1 or query; AppFlow
//   arn:aws:states:::dynamodb:getItem, putItem, updateItem, deleteItem
//   arn:aws:states:::sns:publish, sqs:sendMessage, lambda:invoke
//   arn:aws:states:::glue:startJobRun[.sync]
//   arn:aws:states:::states:startExecution[.sync, .sync:2]
//   arn:aws:lambda:REGION:ACCOUNT:function:NAME
// With .waitForTaskToken the call is made and returns its own result: the caller waits. See
// AwsClient for credentials, region and endpoints.
//
// A repeated call is recognised by its token where the service allows it: as the action's client
// token, as the name of an execution, as an argument of a Glue run.
//
// `env` must outlive it.
std::unique_ptr<states::TaskExecutor> MakeAwsExecutor(
    Env& env, net::AwsSurroundings surroundings = {},
    std::chrono::milliseconds poll_after = std::chrono::milliseconds(5'000));

}  // namespace muster::task
