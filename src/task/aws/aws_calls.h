#pragma once

#include <chrono>
#include <stop_token>
#include <string>
#include <string_view>

#include "core/json.h"
#include "muster/result.h"
#include "muster/task.h"
#include "net/http.h"
#include "task/aws/aws_client.h"
#include "task/aws/aws_protocol.h"
#include "task/aws/aws_service.h"

namespace muster::task {

// How an integration names its errors. Step Functions calls what it has optimised through another
// SDK than the rest, and it shows.
struct AwsNaming {
  std::string_view prefix;   // "DynamoDB" in DynamoDB.ConditionalCheckFailedException
  std::string_view service;  // "AmazonDynamoDBv2" in causes
  std::string_view general;  // the exception for errors without a class of their own, if optimised
  bool optimised = true;
};

AwsNaming SdkNaming(const AwsService& service);

struct AwsReply {
  Json body;
  net::HttpResponse http;
};

template <class T>
using OrFailure = Expected<T, states::TaskFailure>;

// Makes single calls for the executor of AWS's services. Thread-safe.
class AwsCalls {
 public:
  explicit AwsCalls(AwsClient& client) : client_(client) {}

  // One action, with parameters as Step Functions has them. Where the action has a parameter that
  // makes a repetition harmless, it is filled from `token` unless it is given.
  OrFailure<AwsReply> Call(const AwsService& service, std::string_view action, Json parameters,
                           const AwsNaming& naming, const std::string& token, std::stop_token stop);

  // A request that is made by hand. A status of 400 or more is a failure.
  OrFailure<net::HttpResponse> Send(const AwsService& service, const net::HttpRequest& request,
                                    bool repeatable, const AwsNaming& naming, std::stop_token stop);

 private:
  AwsClient& client_;
};

// Whether asking again later may help: the service was not reached, or had no time.
bool IsPassingFailure(const states::TaskFailure& failure);

// A UUID that follows from a token: what services accept as a name or client token.
std::string UuidOf(std::string_view token);

// Adds what the optimised integrations add to a result about the answer itself.
void AddSdkMetadata(Json& result, const net::HttpResponse& response);

}  // namespace muster::task
