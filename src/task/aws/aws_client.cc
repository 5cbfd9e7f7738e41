#include "task/aws/aws_client.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <chrono>

#include "core/backoff.h"
#include "core/url.h"
#include "muster/executors.h"
#include "net/sigv4.h"
#include "task/aws/aws_protocol.h"

namespace muster::task {
namespace {

using std::chrono::milliseconds;

constexpr int kTries = 3;
constexpr Backoff::Pauses kPauses{.first = milliseconds(100), .longest = milliseconds(2'000)};

template <size_t N>
bool IsOneOf(std::string_view code, const std::array<const char*, N>& codes) {
  return std::find(codes.begin(), codes.end(), code) != codes.end();
}

bool IsClockError(const std::string& code) {
  return IsOneOf(code, std::array{"InvalidSignatureException", "RequestExpired",
                                  "RequestTimeTooSkewed", "SignatureDoesNotMatch"});
}

bool IsStaleCredentials(const std::string& code) {
  return IsOneOf(code, std::array{"ExpiredToken", "ExpiredTokenException", "InvalidClientTokenId",
                                  "UnrecognizedClientException"});
}

Result<std::string> RegionIn(const net::AwsSurroundings& at) {
  for (const char* name : {"AWS_REGION", "AWS_DEFAULT_REGION"}) {
    if (std::string region = at.variable(name); !region.empty()) return region;
  }
  return Error{Code::kInvalid, "no AWS region is set", "set AWS_REGION, such as eu-central-1"};
}

}  // namespace

Status CheckAwsAccess(Env& env, std::stop_token stop) {
  MUSTER_TRY(net::AwsCredentialChain(env).Get(std::move(stop)));
  MUSTER_TRY(RegionIn(net::AwsSurroundings()));
  return {};
}

bool IsThrottled(const net::HttpResponse& response) {
  if (response.status == 429 || response.status == 503) return true;
  if (response.status < 400) return false;
  return IsOneOf(DecodeAwsError(response).code,
                 std::array{"BandwidthLimitExceeded", "PriorRequestNotComplete",
                            "ProvisionedThroughputExceededException", "RequestLimitExceeded",
                            "RequestThrottled", "RequestThrottledException", "SlowDown",
                            "ThrottledException", "Throttling", "ThrottlingException",
                            "TooManyRequestsException", "TransactionInProgressException"});
}

AwsClient::AwsClient(Env& env, net::AwsSurroundings surroundings)
    : env_(env), at_(surroundings), credentials_(env, std::move(surroundings)) {}

Result<std::string> AwsClient::Region() const { return RegionIn(at_); }

Result<std::string> AwsClient::Endpoint(const Target& target, const std::string& region) const {
  std::string variable = "AWS_ENDPOINT_URL_";
  for (const char c : target.name) {
    variable += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  for (const std::string& name : {variable, std::string("AWS_ENDPOINT_URL")}) {
    std::string url = at_.variable(name.c_str());
    if (url.empty()) continue;
    while (url.ends_with('/')) url.pop_back();
    if (const auto split = net::SplitHttpUrl(url); !split) return split.error().Within(name);
    return url;
  }
  const std::string domain = region.starts_with("cn-") ? "amazonaws.com.cn" : "amazonaws.com";
  // IAM has one endpoint for all regions.
  if (target.host == "iam") return "https://iam." + domain;
  return "https://" + std::string(target.host) + "." + region + "." + domain;
}

Result<net::HttpResponse> AwsClient::SendOnce(const Target& target, net::HttpRequest request,
                                              std::stop_token stop) {
  MUSTER_ASSIGN(const net::AwsCredentials credentials, credentials_.Get(stop));
  MUSTER_ASSIGN(std::string region, Region());
  MUSTER_ASSIGN(const std::string endpoint, Endpoint(target, region));
  request.url = endpoint + request.url;
  if (target.host == "iam") region = region.starts_with("cn-") ? "cn-north-1" : "us-east-1";
  WallTime now = env_.WallNow();
  {
    const MutexLock lock(mutex_);
    now += ahead_;
  }
  MUSTER_TRY(net::SignRequest(request, credentials,
                              {.region = std::move(region), .service = std::string(target.signing)},
                              now));
  return http_.Send(request, stop);
}

// Whether the server's clock differs so much that signing again may help.
bool AwsClient::LearnTime(const net::HttpResponse& response) {
  const auto date = response.Header("Date");
  const auto theirs = date ? net::ParseHttpDate(*date) : std::nullopt;
  if (!theirs) return false;
  const auto ahead = *theirs - env_.WallNow();
  const MutexLock lock(mutex_);
  if (std::chrono::abs(ahead - ahead_) < std::chrono::minutes(1)) return false;
  ahead_ = ahead;
  return true;
}

Result<net::HttpResponse> AwsClient::Send(const Target& target, const net::HttpRequest& request,
                                          bool repeatable, std::stop_token stop) {
  Backoff backoff(env_, stop, kPauses);
  for (int tries = 1;; ++tries) {
    auto response = SendOnce(target, request, stop);
    bool again = false;
    if (response) {
      again = IsThrottled(*response) || (response->status >= 500 && repeatable);
      if (!again && response->status >= 400) {
        const std::string code = DecodeAwsError(*response).code;
        if (IsStaleCredentials(code)) credentials_.Forget();
        again = (IsClockError(code) && LearnTime(*response)) ||
                (IsStaleCredentials(code) && tries == 1);
      }
    } else {
      const Code code = response.error().code;
      again = code == Code::kUnavailable || (code == Code::kUnknownOutcome && repeatable);
    }
    if (!again || tries == kTries) return response;
    if (!backoff.Pause()) return Error{Code::kCancelled, "stopped before retrying a call of AWS"};
  }
}

}  // namespace muster::task
