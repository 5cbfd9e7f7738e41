#include "task/call/http_executor.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include "core/json.h"
#include "core/secrets.h"
#include "core/sha256.h"
#include "core/url.h"
#include "net/http.h"
#include "task/background.h"
#include "task/secret_references.h"

namespace muster::task {
namespace {

using std::chrono::milliseconds;

constexpr size_t kMaxAnswerBytes = size_t{256} << 10;
constexpr milliseconds kMaxTime{60'000};

Error Wrong(const std::string& what) { return Error{Code::kInvalid, "http:invoke: " + what}; }

std::string ScalarText(const Json& value) {
  return value.is_string() ? value.get<std::string>() : ToJsonText(value);
}

// name=value&name=value; an array repeats its name.
std::string Form(const Json& values) {
  std::string form;
  const auto add = [&](const std::string& name, const Json& value) {
    if (!form.empty()) form += '&';
    form += PercentEncode(name) + "=" + PercentEncode(ScalarText(value));
  };
  for (const auto& [name, value] : values.items()) {
    if (value.is_array()) {
      for (const Json& element : value) add(name, element);
    } else {
      add(name, value);
    }
  }
  return form;
}

const std::string* FindHeader(const net::HttpHeaders& headers, std::string_view name) {
  for (const auto& header : headers) {
    if (net::SameHeaderName(header.first, name)) return &header.second;
  }
  return nullptr;
}

Status ReadHeaders(const states::TaskCall& call, net::HttpRequest& request) {
  const Json& values = call.input["Headers"];
  if (!values.is_object()) return Wrong("Headers must be an object");
  for (const auto& [name, value] : values.items()) {
    MUSTER_ASSIGN(std::string resolved,
                  ResolveReferences(call, JsonPointerTo("/Headers", name), ScalarText(value)));
    request.headers.emplace_back(name, std::move(resolved));
  }
  return {};
}

void SetBody(const Json& body, net::HttpRequest& request) {
  const std::string* type = FindHeader(request.headers, "Content-Type");
  if (type != nullptr && type->starts_with("application/x-www-form-urlencoded") &&
      body.is_object()) {
    request.body = Form(body);
    return;
  }
  request.body = ScalarText(body);
  if (type == nullptr) {
    request.headers.emplace_back("Content-Type",
                                 body.is_string() ? "text/plain" : "application/json");
  }
}

Result<net::HttpRequest> ReadRequest(const states::TaskCall& call) {
  const Json& input = call.input;
  if (!input.is_object()) return Wrong("parameters must be an object");
  for (const char* name : {"ApiEndpoint", "Method"}) {
    if (!input.contains(name) || !input[name].is_string()) {
      return Wrong(std::string(name) + " must be a string");
    }
  }
  if (input.contains("Authentication")) {
    return Wrong(
        "Authentication (an EventBridge connection) is not supported: set Headers instead, with "
        "a secret reference such as ${env:API_TOKEN}");
  }
  net::HttpRequest request{.method = input["Method"], .url = input["ApiEndpoint"]};
  if (input.contains("Headers")) MUSTER_TRY(ReadHeaders(call, request));
  if (input.contains("QueryParameters") && !input["QueryParameters"].empty()) {
    if (!input["QueryParameters"].is_object()) return Wrong("QueryParameters must be an object");
    request.url += request.url.find('?') == std::string::npos ? '?' : '&';
    request.url += Form(input["QueryParameters"]);
  }
  if (input.contains("RequestBody")) SetBody(input["RequestBody"], request);
  if (request.method != "GET" && request.method != "HEAD" &&
      FindHeader(request.headers, "Idempotency-Key") == nullptr) {
    request.headers.emplace_back("Idempotency-Key", Sha256Hex(call.token).substr(0, 32));
  }
  request.timeout = std::min(call.timeout.value_or(kMaxTime), kMaxTime);
  request.max_response_bytes = kMaxAnswerBytes;
  return request;
}

std::string_view StatusText(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 201:
      return "Created";
    case 202:
      return "Accepted";
    case 204:
      return "No Content";
    default:
      return "";
  }
}

Json ResultOf(const net::HttpResponse& response) {
  Json headers = Json::object();
  for (const auto& [name, value] : response.headers) headers[name].push_back(value);
  Json body = response.body;
  if (response.Header("Content-Type").value_or("").find("json") != std::string_view::npos) {
    if (auto parsed = ParseJson(response.body, "the answer")) body = *std::move(parsed);
  }
  return {{"Headers", std::move(headers)},
          {"ResponseBody", std::move(body)},
          {"StatusCode", response.status},
          {"StatusText", StatusText(response.status)}};
}

states::TaskOutcome OutcomeOf(const net::HttpResponse& response) {
  Json result = ResultOf(response);
  if (response.status < 300) return states::TaskSuccess{std::move(result)};
  return states::TaskFailure{"States.Http.StatusCode." + std::to_string(response.status),
                             Redact(ToJsonText(result))};
}

class HttpExecutor final : public BlockingExecutor {
 public:
  HttpExecutor() : BlockingExecutor("Http") {}

  bool Runs(std::string_view resource) const override {
    return resource == "muster:http" || resource == "arn:aws:states:::http:invoke";
  }

 protected:
  Result<Work> Prepare(const states::TaskCall& call, states::TaskContext& /*context*/) override {
    MUSTER_ASSIGN(net::HttpRequest request, ReadRequest(call));
    return Work([this, request = std::move(request)](
                    const std::stop_token& stop) -> Result<states::TaskOutcome> {
      MUSTER_ASSIGN(const net::HttpResponse response, http_.Send(request, stop));
      return OutcomeOf(response);
    });
  }

  // Retrying a request that cannot be sent is pointless.
  states::TaskFailure FailureOf(const states::TaskCall& /*call*/,
                                const Error& error) const override {
    if (net::IsAnswerTooLarge(error)) return {"States.DataLimitExceeded", error.ToString()};
    const bool invalid = error.code == Code::kInvalid;
    return {invalid ? "States.Runtime" : "States.Http.Socket", error.ToString()};
  }

 private:
  net::HttpClient http_;
};

}  // namespace

std::unique_ptr<states::TaskExecutor> MakeHttpExecutor() {
  return std::make_unique<HttpExecutor>();
}

}  // namespace muster::task
