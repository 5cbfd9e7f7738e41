#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "base/aws_credentials.h"
#include "base/http.h"
#include "base/json.h"
#include "muster/env.h"
#include "muster/result.h"
#include "store/dynamodb_place.h"
#include "store/server_clock.h"

namespace muster {

// A final answer of the server.
struct DynamoDbAnswer {
  std::string error = {};    // "ConditionalCheckFailedException"; empty: done
  std::string message = {};  // of an error
  Json body = {};            // of an error as well: it may hold the item that was in the way
  bool in_doubt = false;     // an earlier try of the same request may have been applied

  bool ok() const { return error.empty(); }
};

// How long answers are waited for. Tests are less patient.
struct DynamoDbLimits {
  std::chrono::milliseconds request_timeout{4'000};
  std::chrono::milliseconds call_timeout{8'000};  // with all that is tried again
};

// How long and how often a call is tried, with pauses that grow and are drawn at random, so that
// those who were throttled together do not come back together.
class DynamoDbPatience {
 public:
  DynamoDbPatience(Env& env, std::chrono::milliseconds time)
      : env_(env), end_(env.MonoNow() + time) {}

  // Waits before another try. False: there is no time for one.
  bool Pause();

  std::chrono::milliseconds Left() const;

 private:
  Env& env_;
  const MonoTime end_;
  int pauses_ = 0;
};

// Sends requests to DynamoDB: JSON over HTTP, signed. Keeps the server's clock by the Date of every
// answer. Thread-safe. `env` must outlive it.
class DynamoDbClient {
 public:
  DynamoDbClient(DynamoDbPlace place, Env& env, const DynamoDbLimits& limits = {});

  const DynamoDbPlace& place() const { return place_; }

  // For one call.
  DynamoDbPatience NewPatience() const { return {env_, limits_.call_timeout}; }

  // Sends a request until it has a final answer: again while the server throttles, or is busy with
  // another change of the same item; again, too, when it is not known whether it was applied. So a
  // write has to be conditional, and such that its sender can tell its own success.
  //
  // Errors are answers: see ErrorOf. Failures: kUnavailable, nothing was applied; kUnknownOutcome,
  // for a write; kPermission, kInvalid: no credentials, or none that the server takes.
  Result<DynamoDbAnswer> Call(std::string_view operation, const Json& request,
                              DynamoDbPatience& patience);
  Result<DynamoDbAnswer> Call(std::string_view operation, const Json& request);

  // What an answer that its caller did not expect means to a person.
  Error ErrorOf(std::string_view operation, const DynamoDbAnswer& answer) const;

  // The server's time. Asks the server if it has not answered anything for a while.
  Result<ServerClock::Reading> ReadClock();

  // Has the server tell its time, by a request that reads next to nothing.
  Status AskForTime();

 private:
  enum class Verdict { kFinal, kNotApplied, kInDoubt, kCredentials };

  Result<HttpResponse> Send(std::string_view operation, const std::string& body, bool writes,
                            std::chrono::milliseconds timeout);
  WallTime SigningTime();
  static Verdict Judge(const HttpResponse& response, const DynamoDbAnswer& answer);

  const DynamoDbPlace place_;
  const DynamoDbLimits limits_;
  Env& env_;
  HttpClient http_;
  AwsCredentialChain credentials_;
  ServerClock clock_;
};

}  // namespace muster
