#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "core/json.h"
#include "muster/env.h"
#include "muster/result.h"
#include "net/aws_credentials.h"
#include "net/http.h"
#include "store/dynamodb/dynamodb_place.h"
#include "store/server_clock.h"

namespace muster::store {

// A final response from the server.
struct DynamoDbAnswer {
  std::string error = {};    // "ConditionalCheckFailedException"; empty: success
  std::string message = {};  // of an error
  Json body = {};            // also of an error: may contain the conflicting item
  bool in_doubt = false;     // an earlier try of the same request may have been applied

  bool ok() const { return error.empty(); }
  bool ConditionFailed() const { return error == "ConditionalCheckFailedException"; }
};

// Timeouts. Tests use shorter ones.
struct DynamoDbLimits {
  std::chrono::milliseconds request_timeout{4'000};
  std::chrono::milliseconds call_timeout{8'000};  // including retries
};

// How long and how often a call is retried, with jittered backoff, so that clients throttled
// together do not retry together.
class DynamoDbPatience {
 public:
  DynamoDbPatience(Env& env, std::chrono::milliseconds time)
      : env_(env), end_(env.MonoNow() + time) {}

  // Pauses before a retry. False: no time left.
  bool Pause();

  std::chrono::milliseconds Left() const;

 private:
  Env& env_;
  const MonoTime end_;
  int pauses_ = 0;
};

// Sends requests to DynamoDB: JSON over HTTP, signed. Tracks the server's clock by the Date of
// every response. Thread-safe. `env` must outlive it.
class DynamoDbClient {
 public:
  DynamoDbClient(DynamoDbPlace place, Env& env, const DynamoDbLimits& limits = {});

  const DynamoDbPlace& place() const { return place_; }

  // For one call.
  DynamoDbPatience NewPatience() const { return {env_, limits_.call_timeout}; }

  // Sends a request until it has a final response: retries while the server throttles or is busy
  // with another change of the same item, and also after an unknown outcome. So a write must be
  // conditional, and its sender must be able to recognise its own success.
  //
  // Errors are responses: see ErrorOf. Failures: kUnavailable, nothing was applied;
  // kUnknownOutcome, for a write; kPermission, kInvalid: no credentials, or none that the server
  // accepts.
  Result<DynamoDbAnswer> Call(std::string_view operation, const Json& request,
                              DynamoDbPatience& patience);
  Result<DynamoDbAnswer> Call(std::string_view operation, const Json& request);

  // The body of a response to a read. An error response is a failure too.
  Result<Json> Fetch(std::string_view operation, const Json& request);

  // The current item of a request { TableName, Key }; empty: none.
  Result<Json> GetItem(Json request);

  // An unexpected response, as an error to report.
  Error ErrorOf(std::string_view operation, const DynamoDbAnswer& answer) const;

  // The server's time. Sends a request if there was no response for a while.
  Result<ServerClock::Reading> ReadClock();

  // Fetches the server's time with a minimal read.
  Status AskForTime();

 private:
  enum class Verdict { kFinal, kNotApplied, kInDoubt, kCredentials };

  Result<net::HttpResponse> Send(std::string_view operation, const std::string& body, bool writes,
                                 std::chrono::milliseconds timeout);
  WallTime SigningTime();
  static Verdict Judge(const net::HttpResponse& response, const DynamoDbAnswer& answer);

  const DynamoDbPlace place_;
  const DynamoDbLimits limits_;
  Env& env_;
  net::HttpClient http_;
  net::AwsCredentialChain credentials_;
  ServerClock clock_;
};

}  // namespace muster::store
