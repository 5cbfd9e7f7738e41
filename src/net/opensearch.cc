#include "net/opensearch.h"

#include <algorithm>
#include <charconv>

#include "core/gzip.h"
#include "core/json_fields.h"
#include "core/secrets.h"
#include "net/opensearch_errors.h"

namespace muster::net {
namespace {

constexpr size_t kMaxReasonBytes = 500;
// Even if the server asks for more: it may be back sooner.
constexpr std::chrono::milliseconds kLongestRetryAfter{60'000};

Error Invalid(std::string message, std::string hint) {
  return Error{Code::kInvalid, std::move(message), std::move(hint)};
}

Result<std::string> ByReference(const std::string& value, const std::string& what) {
  if (!value.empty() && !IsSecretReference(value)) {
    return Invalid(what + " is in plain text in the URL",
                   "use ${env:NAME} or ${file:PATH} instead");
  }
  return ExpandSecrets(value);
}

// OpenSearch errors are {"error":{"type","reason",…},"status"}; a security layer sends plain text
// or {"message"}.
OpenSearchRefusal RefusalIn(const OpenSearchAnswer& answer) {
  OpenSearchRefusal refusal{.status = answer.status};
  const auto json = ParseJson(answer.body, "answer");
  if (json && json->is_object()) {
    const auto error = json->find("error");
    if (error != json->end() && error->is_object()) {
      refusal.type = TextIn(*error, "type");
      refusal.reason = TextIn(*error, "reason");
      const auto cause = error->find("caused_by");
      if (cause != error->end() && cause->is_object() && !TextIn(*cause, "reason").empty()) {
        refusal.reason += ": " + TextIn(*cause, "reason");
      }
    } else if (error != json->end() && error->is_string()) {
      refusal.reason = *error;
    } else {
      refusal.reason = TextIn(*json, "message");
    }
  }
  if (refusal.reason.empty()) refusal.reason = answer.body.substr(0, kMaxReasonBytes);
  if (refusal.reason.size() > kMaxReasonBytes) refusal.reason.resize(kMaxReasonBytes);
  return refusal;
}

bool Writes(const OpenSearchCall& call) {
  return call.writes.value_or(call.method != "GET" && call.method != "HEAD");
}

std::optional<std::chrono::milliseconds> RetryAfter(const HttpResponse& response) {
  const auto text = response.Header("Retry-After");
  if (!text) return std::nullopt;
  int seconds = 0;
  const auto [end, problem] = std::from_chars(text->data(), text->data() + text->size(), seconds);
  if (problem != std::errc() || end != text->data() + text->size() || seconds < 0) {
    return std::nullopt;
  }
  return std::min<std::chrono::milliseconds>(std::chrono::seconds(seconds), kLongestRetryAfter);
}

// Whether `name` is a parameter of an endpoint.
Result<bool> SetParameter(const std::string& name, const std::string& value,
                          OpenSearchEndpoint& endpoint) {
  if (name == "api_key") {
    MUSTER_ASSIGN(endpoint.api_key, ByReference(value, "an API key"));
  } else if (name == "token") {
    MUSTER_ASSIGN(endpoint.token, ByReference(value, "a token"));
  } else if (name == "aws") {
    endpoint.aws_region = value;
  } else if (name == "service") {
    endpoint.aws_service = value;
  } else if (name == "cert") {
    endpoint.cert_file = value;
  } else if (name == "key") {
    endpoint.key_file = value;
  } else if (name == "ca") {
    endpoint.ca_file = value;
  } else if (name == "insecure") {
    if (value != "yes") return Invalid("insecure=" + value + " is unclear", "write insecure=yes");
    endpoint.insecure = true;
  } else {
    return false;
  }
  return true;
}

Status CheckAuthentication(const OpenSearchEndpoint& endpoint, const Url& url) {
  if (endpoint.aws_service != "es" && endpoint.aws_service != "aoss") {
    return Invalid("service '" + endpoint.aws_service + "' is not one that OpenSearch runs as",
                   "use service=es for a domain, service=aoss for Serverless");
  }
  const int ways = int{!endpoint.user.empty()} + int{!endpoint.api_key.empty()} +
                   int{!endpoint.token.empty()} + int{!endpoint.aws_region.empty()};
  if (ways > 1) {
    return Invalid("the URL has more than one way to authenticate",
                   "use only one of USER:PASSWORD@, api_key=, token= and aws=");
  }
  if (endpoint.user.empty() != url.password.empty()) {
    return Invalid("the URL names a user or a password, but not both",
                   "write opensearch+https://USER:${env:NAME}@HOST");
  }
  return {};
}

Status CheckTls(const OpenSearchEndpoint& endpoint) {
  if (endpoint.cert_file.empty() != endpoint.key_file.empty()) {
    return Invalid("a client certificate needs its private key",
                   "give both cert=FILE and key=FILE; they may name the same file");
  }
  if (endpoint.insecure && !endpoint.ca_file.empty()) {
    return Invalid("insecure=yes and ca= contradict each other", "leave out insecure=yes");
  }
  const bool is_tls = endpoint.base_url.starts_with("https:");
  const bool wants_tls =
      endpoint.insecure || !endpoint.ca_file.empty() || !endpoint.cert_file.empty();
  if (wants_tls && !is_tls) {
    return Invalid("certificates need TLS, and the URL begins with opensearch+http:",
                   "write opensearch+https://HOST, or leave out ca=, cert=, key= and insecure=");
  }
  return {};
}

}  // namespace

Result<OpenSearchEndpoint> OpenSearchEndpoint::FromUrl(const Url& url,
                                                       const std::set<std::string>& others) {
  OpenSearchEndpoint endpoint;
  if (url.scheme != "opensearch+http" && url.scheme != "opensearch+https") {
    return Invalid("'" + url.scheme + "' is not an OpenSearch URL scheme",
                   "write opensearch+https://HOST or opensearch+http://HOST");
  }
  if (url.host.empty()) return Invalid("the URL names no host", "write opensearch+https://HOST");
  const bool ipv6 = url.host.find(':') != std::string::npos;
  endpoint.base_url = url.scheme.substr(std::string_view("opensearch+").size()) + "://" +
                      (ipv6 ? "[" + url.host + "]" : url.host);
  if (url.port) endpoint.base_url += ":" + std::to_string(*url.port);
  endpoint.user = url.user;
  MUSTER_ASSIGN(endpoint.password, ByReference(url.password, "a password"));
  for (const auto& [name, value] : url.query) {
    MUSTER_ASSIGN(const bool known, SetParameter(name, value, endpoint));
    if (!known && !others.contains(name)) {
      std::string names = "api_key, token, aws, service, cert, key, ca and insecure";
      for (const std::string& other : others) names += ", " + other;
      return Invalid("the URL has an unknown parameter '" + name + "'", "there are " + names);
    }
  }
  MUSTER_TRY(CheckAuthentication(endpoint, url));
  MUSTER_TRY(CheckTls(endpoint));
  return endpoint;
}

OpenSearchClient::OpenSearchClient(OpenSearchEndpoint endpoint, Env& env)
    : endpoint_(std::move(endpoint)),
      place_("OpenSearch at " + endpoint_.base_url),
      env_(env),
      http_(HttpOptions{.ca_file = endpoint_.ca_file,
                        .verify_tls = !endpoint_.insecure,
                        .cert_file = endpoint_.cert_file,
                        .key_file = endpoint_.key_file}) {
  if (!endpoint_.aws_region.empty()) aws_ = std::make_unique<AwsCredentialChain>(env);
}

Status OpenSearchClient::Authorize(HttpRequest& request, std::stop_token stop) {
  if (!endpoint_.user.empty()) {
    request.headers.emplace_back("Authorization",
                                 BasicAuthorization(endpoint_.user, endpoint_.password));
  } else if (!endpoint_.api_key.empty()) {
    request.headers.emplace_back("Authorization", "ApiKey " + endpoint_.api_key);
  } else if (!endpoint_.token.empty()) {
    request.headers.emplace_back("Authorization", "Bearer " + endpoint_.token);
  } else if (aws_ != nullptr) {
    MUSTER_ASSIGN(const AwsCredentials credentials, aws_->Get(stop));
    MUSTER_TRY(SignRequest(request, credentials,
                           {.region = endpoint_.aws_region, .service = endpoint_.aws_service},
                           env_.WallNow() + aws_ahead_.load()));
  }
  return {};
}

Result<OpenSearchAnswer> OpenSearchClient::Send(const OpenSearchCall& call, std::stop_token stop) {
  HttpRequest request{.method = call.method,
                      .url = endpoint_.base_url + call.path,
                      .body = call.gzip ? Gzip(call.body) : call.body,
                      .timeout = call.timeout,
                      .max_response_bytes = call.max_response_bytes,
                      .writes = call.writes};
  request.connect_timeout = std::min(request.connect_timeout, call.timeout);
  if (!call.body.empty()) request.headers.emplace_back("Content-Type", call.content_type);
  if (call.gzip) request.headers.emplace_back("Content-Encoding", "gzip");
  MUSTER_TRY(Authorize(request, stop));
  MUSTER_ASSIGN(HttpResponse response, http_.Send(request, stop));
  OpenSearchAnswer answer{.status = response.status, .body = std::move(response.body)};
  answer.retry_after = RetryAfter(response);
  if (const auto date = response.Header("Date")) answer.date = ParseHttpDate(*date);
  // Expired credentials may have been renewed, and the next request is signed with the server's
  // time.
  if (aws_ != nullptr && answer.status == 403) {
    aws_->Forget();
    if (answer.date) aws_ahead_ = *answer.date - env_.WallNow();
  }
  return answer;
}

Result<Json> OpenSearchClient::SendForJson(const OpenSearchCall& call, std::stop_token stop) {
  MUSTER_ASSIGN(const OpenSearchAnswer answer, Send(call, stop));
  if (answer.status >= 300) return ErrorOf(call, answer);
  auto json = ParseJson(answer.body, place_, {.bytes = call.max_response_bytes, .depth = 500});
  if (!json) return Error{Code::kInternal, place_ + ": " + json.error().message};
  return std::move(*json);
}

Error OpenSearchClient::ErrorOf(const OpenSearchCall& call, const OpenSearchAnswer& answer) const {
  OpenSearchRefusal refusal = RefusalIn(answer);
  Error error = OpenSearchError(refusal, Writes(call));
  const std::string path = call.path.substr(0, call.path.find('?'));
  error.message =
      Redact(place_ + " answers " + call.method + " " + path + " with " +
             std::to_string(answer.status) + (refusal.reason.empty() ? "" : ": " + refusal.reason));
  return error;
}

std::string OpenSearchPath(std::string_view name) { return PercentEncode(name); }

}  // namespace muster::net
