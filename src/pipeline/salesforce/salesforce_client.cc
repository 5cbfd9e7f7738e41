#include "pipeline/salesforce/salesforce_client.h"

#include <algorithm>

#include "core/backoff.h"
#include "core/base64.h"
#include "core/json_fields.h"
#include "core/mutex.h"
#include "core/secrets.h"
#include "net/rsa.h"

namespace muster::pipeline {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr int kTries = 6;
constexpr Backoff::Pauses kPauses{.first = milliseconds(500), .longest = seconds(20)};
constexpr size_t kMaxAnswerBytes = size_t{512} << 20;
constexpr seconds kAnswerTime{300};

std::string Base64Url(std::string_view bytes) {
  std::string text = EncodeBase64(bytes);
  std::replace(text.begin(), text.end(), '+', '-');
  std::replace(text.begin(), text.end(), '/', '_');
  text.erase(text.find_last_not_of('=') + 1);
  return text;
}

// Salesforce reports errors as [{"errorCode", "message"}], the login as {"error", …}.
std::string ReasonOf(const net::HttpResponse& response) {
  const auto json = ParseJson(response.body, "answer");
  if (!json) return "";
  const Json& first = json->is_array() && !json->empty() ? json->front() : *json;
  if (!first.is_object()) return "";
  std::string reason;
  for (const char* field : {"errorCode", "error", "message", "error_description"}) {
    if (first.contains(field) && first[field].is_string()) {
      reason += (reason.empty() ? "" : ": ") + first[field].get<std::string>();
    }
  }
  return reason;
}

}  // namespace

SalesforceClient::SalesforceClient(std::string origin, std::string version, SalesforceLogin login,
                                   Env& env)
    : origin_(std::move(origin)),
      version_(std::move(version)),
      login_(std::move(login)),
      env_(env) {}

Result<net::HttpResponse> SalesforceClient::Get(const std::string& path,
                                                const std::stop_token& stop) {
  return Send({.method = "GET", .url = path}, stop);
}

Result<Json> SalesforceClient::GetJson(const std::string& path, const std::stop_token& stop) {
  MUSTER_ASSIGN(const net::HttpResponse response, Get(path, stop));
  return ParseJson(response.body, origin_ + "/" + path);
}

Result<Json> SalesforceClient::PostJson(const std::string& path, const Json& body,
                                        const std::stop_token& stop) {
  MUSTER_ASSIGN(const net::HttpResponse response,
                Send({.method = "POST",
                      .url = path,
                      .headers = {{"Content-Type", "application/json"}},
                      .body = ToJsonText(body)},
                     stop));
  return ParseJson(response.body, origin_ + "/" + path);
}

Result<net::HttpResponse> SalesforceClient::Send(net::HttpRequest request,
                                                 const std::stop_token& stop) {
  request.max_response_bytes = kMaxAnswerBytes;
  request.timeout = kAnswerTime;
  Backoff backoff(env_, stop, kPauses);
  for (int tries = 1;; ++tries) {
    auto response = SendOnce(request, stop);
    const bool passing = !response && response.error().code == Code::kUnavailable;
    if (!passing || tries == kTries) return response;
    if (!backoff.Pause()) return Error{Code::kCancelled, "stopped"};
  }
}

Result<net::HttpResponse> SalesforceClient::SendOnce(net::HttpRequest request,
                                                     const std::stop_token& stop) {
  const std::string path = request.url;
  for (bool again = false;; again = true) {
    MUSTER_ASSIGN(const std::string token, Token(stop));
    {
      const MutexLock lock(mutex_);
      request.url = instance_ + "/services/data/v" + version_ + "/" + path;
    }
    net::HttpRequest signed_request = request;
    signed_request.headers.emplace_back("Authorization", "Bearer " + token);
    MUSTER_ASSIGN(net::HttpResponse response, http_.Send(signed_request, stop));
    if (response.status < 300) return response;
    if (response.status != 401 || again) return ErrorOf(request, response);
    Forget(token);
  }
}

void SalesforceClient::Forget(const std::string& token) {
  const MutexLock lock(mutex_);
  if (token_ == token) token_.clear();
}

Result<std::string> SalesforceClient::Token(const std::stop_token& stop) {
  const MutexLock lock(mutex_);
  if (!token_.empty()) return token_;
  MUSTER_ASSIGN(std::string form, LoginForm());
  const net::HttpRequest request{.method = "POST",
                                 .url = origin_ + "/services/oauth2/token",
                                 .headers = {{"Content-Type", "application/x-www-form-urlencoded"}},
                                 .body = std::move(form),
                                 .writes = false};
  MUSTER_ASSIGN(const net::HttpResponse response, http_.Send(request, stop));
  if (response.status == 400 || response.status == 401) {
    return Error{Code::kPermission, origin_ + " refuses the login: " + ReasonOf(response),
                 "check client_id and client_secret, or user and key, and that the connected app "
                 "allows this flow"};
  }
  if (response.status >= 300) return ErrorOf(request, response);
  MUSTER_ASSIGN(const Json answer, ParseJson(response.body, origin_ + "/services/oauth2/token"));
  if (!answer.is_object() || !answer.contains("access_token") ||
      !answer["access_token"].is_string()) {
    return Error{Code::kInvalid, origin_ + " returned no access_token at login"};
  }
  token_ = answer["access_token"].get<std::string>();
  RememberSecret(token_);
  instance_ = TextIn(answer, "instance_url");
  if (instance_.empty()) instance_ = origin_;
  return token_;
}

Result<std::string> SalesforceClient::LoginForm() const {
  if (login_.key.empty()) {
    return "grant_type=client_credentials&client_id=" + PercentEncode(login_.client_id) +
           "&client_secret=" + PercentEncode(login_.client_secret);
  }
  MUSTER_ASSIGN(const std::string assertion, Assertion());
  return "grant_type=" + PercentEncode("urn:ietf:params:oauth:grant-type:jwt-bearer") +
         "&assertion=" + assertion;
}

Result<std::string> SalesforceClient::Assertion() const {
  const auto now = std::chrono::duration_cast<seconds>(env_.WallNow().time_since_epoch());
  const Json claims{{"iss", login_.client_id},
                    {"sub", login_.user},
                    {"aud", login_.audience},
                    {"exp", (now + seconds(180)).count()}};
  const std::string text = Base64Url(R"({"alg":"RS256"})") + "." + Base64Url(ToJsonText(claims));
  MUSTER_ASSIGN(const std::string signature, net::SignRs256(text, login_.key));
  return text + "." + Base64Url(signature);
}

Error SalesforceClient::ErrorOf(const net::HttpRequest& request,
                                const net::HttpResponse& response) {
  const std::string reason = ReasonOf(response);
  const std::string message = request.method + " " + request.url.substr(0, request.url.find('?')) +
                              ": status " + std::to_string(response.status) +
                              (reason.empty() ? "" : ": " + reason);
  const bool limit = reason.find("LIMIT_EXCEEDED") != std::string::npos;
  if (limit || response.status == 429 || response.status >= 500) {
    return {
        Code::kUnavailable, message,
        limit ? "the org's limit of API calls is used up: try again when it has recovered" : ""};
  }
  if (response.status == 401 || response.status == 403) return {Code::kPermission, message};
  if (response.status == 404) return {Code::kNotFound, message};
  return {Code::kInvalid, message};
}

}  // namespace muster::pipeline
