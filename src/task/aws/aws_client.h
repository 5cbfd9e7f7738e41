#pragma once

#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include "core/mutex.h"
#include "muster/env.h"
#include "muster/result.h"
#include "net/aws_credentials.h"
#include "net/http.h"

namespace muster::task {

// Sends requests to AWS, signed with the credentials that AWS's own tools would use.
//
// The region is AWS_REGION or AWS_DEFAULT_REGION. AWS_ENDPOINT_URL_SERVICE (by the service's
// name: AWS_ENDPOINT_URL_DYNAMODB) and AWS_ENDPOINT_URL name another endpoint.
//
// Transient failures (unreachable, throttled) are tried three times with backoff, as in AWS's SDKs;
// requests of unknown outcome (no answer, or a server error) only if `repeatable`. If the server's
// clock differs from this machine's, later requests are signed with the server's time.
//
// Thread-safe. `env` must outlive it.
class AwsClient {
 public:
  explicit AwsClient(Env& env, net::AwsSurroundings surroundings = {});

  struct Target {
    std::string_view name;     // for the endpoint's variable: "dynamodb"
    std::string_view host;     // HOST.REGION.amazonaws.com
    std::string_view signing;  // the service's name in signatures
  };

  // `request.url` is the path and query. Every complete answer is a response, whatever its status.
  // Errors as HttpClient's and AwsCredentialChain's.
  Result<net::HttpResponse> Send(const Target& target, const net::HttpRequest& request,
                                 bool repeatable, std::stop_token stop);

  // kInvalid: neither variable is set.
  Result<std::string> Region() const;

 private:
  Result<std::string> Endpoint(const Target& target, const std::string& region) const;
  Result<net::HttpResponse> SendOnce(const Target& target, net::HttpRequest request,
                                     std::stop_token stop);
  bool LearnTime(const net::HttpResponse& response);

  Env& env_;
  const net::AwsSurroundings at_;
  net::AwsCredentialChain credentials_;
  net::HttpClient http_;
  Mutex mutex_;
  std::chrono::milliseconds ahead_ GUARDED_BY(mutex_){0};  // the server's clock, minus ours
};

// Whether the request was throttled: nothing was applied, a retry may succeed.
bool IsThrottled(const net::HttpResponse& response);

}  // namespace muster::task
