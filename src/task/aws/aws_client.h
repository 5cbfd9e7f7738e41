#pragma once

#include <functional>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include "muster/env.h"
#include "muster/result.h"
#include "net/aws_credentials.h"
#include "net/http.h"

namespace muster::task {

// Sends requests to AWS, signed with the credentials that AWS's own tools would use.
//
// The region is AWS_REGION or AWS_DEFAULT_REGION. AWS_ENDPOINT_URL_SERVICE (by the service's
// name: AWS_ENDPOINT_URL_DYNAMODB) and AWS_ENDPOINT_URL name another server to speak to.
//
// What fails for a moment (not reached, throttled) is tried three times with growing pauses, like
// AWS's SDKs do; what may have been applied (no answer, or a server's error) only if `repeatable`.
// When the server's clock disagrees with this machine's, its time is signed from then on.
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

  // `request.url` is the path, and the query if there is one. Every complete answer is a response,
  // whatever its status. Errors as HttpClient's, and as AwsCredentialChain's.
  Result<net::HttpResponse> Send(const Target& target, const net::HttpRequest& request,
                                 bool repeatable, std::stop_token stop);

  // kInvalid: neither of the variables is set.
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
  std::mutex mutex_;
  std::chrono::milliseconds ahead_{0};  // the server's clock, compared with ours
};

// Whether an answer says "not now": nothing was applied, a later try may succeed.
bool IsThrottled(const net::HttpResponse& response);

// Whether calls of AWS can be signed: that there are credentials, and a region. kInvalid says what
// is missing and how to give it. Calls no service of AWS but for an instance's or container's own.
Status CheckAwsAccess(Env& env, const std::stop_token& stop);

}  // namespace muster::task
