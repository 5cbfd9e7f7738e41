#pragma once

#include <chrono>
#include <stop_token>
#include <string>
#include <string_view>

#include "core/json.h"
#include "muster/result.h"
#include "muster/states.h"
#include "net/http.h"
#include "task/aws/aws_client.h"
#include "task/aws/aws_protocol.h"
#include "task/aws/aws_service.h"

namespace muster::task {

// How an integration names its errors. Step Functions uses another SDK for its optimised
// integrations, with other names.
struct AwsNaming {
  std::string_view prefix;   // "DynamoDB" in DynamoDB.ConditionalCheckFailedException
  std::string_view service;  // "AmazonDynamoDBv2" in causes
  std::string_view general;  // optimised: the exception for errors without their own class
  bool optimised = true;
};

AwsNaming SdkNaming(const AwsService& service);

struct AwsReply {
  Json body;
  net::HttpResponse http;
};

template <class T>
using OrFailure = Expected<T, states::TaskFailure>;

// Makes single calls of AWS services. Thread-safe.
class AwsCalls {
 public:
  explicit AwsCalls(AwsClient& client) : client_(client) {}

  // One action, with parameters named as in Step Functions. If the action has an idempotency
  // parameter, it is derived from `token` unless it is given.
  OrFailure<AwsReply> Call(const AwsService& service, std::string_view action, Json parameters,
                           const AwsNaming& naming, const std::string& token, std::stop_token stop);

  // A prepared request. A status of 400 or more is a failure.
  OrFailure<net::HttpResponse> Send(const AwsService& service, const net::HttpRequest& request,
                                    bool repeatable, const AwsNaming& naming, std::stop_token stop);

 private:
  AwsClient& client_;
};

// Whether a retry may succeed: the service was not reached, or is overloaded.
bool IsPassingFailure(const states::TaskFailure& failure);

// A UUID derived from a token, which services accept as a name or client token.
std::string UuidOf(std::string_view token);

// Adds the response metadata that optimised integrations put into their results.
void AddSdkMetadata(Json& result, const net::HttpResponse& response);

}  // namespace muster::task
