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

// name=value&name=value, arrays as the same name again.
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
  if (!input.is_object()) return Wrong("its parameters must be an object");
  for (const char* name : {"ApiEndpoint", "Method"}) {
    if (!input.contains(name) || !input[name].is_string()) {
      return Wrong(std::string(name) + " must be a string");
    }
  }
  if (input.contains("Authentication")) {
    return Wrong(
        "Authentication by a connection is not supported: put what the API wants into "
        "Headers, with a reference to the secret such as ${env:API_TOKEN}");
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

class HttpExecutor : public states::TaskExecutor {
 public:
  bool Runs(std::string_view resource) const override {
    return resource == "muster:http" || resource == "arn:aws:states:::http:invoke";
  }

  states::TaskOutcome Start(const states::TaskCall& call, states::TaskContext& context) override {
    const auto request = ReadRequest(call);
    if (!request) return states::TaskFailure{"States.Runtime", request.error().ToString()};
    const auto start = std::chrono::steady_clock::now();
    const auto response = InBackground(
        call, context, [&](std::stop_token stop) { return http_.Send(*request, std::move(stop)); });
    if (!response) {
      if (IsTimeUp(call, start)) return TimedOut();
      return states::TaskFailure{"States.Http.Socket", response.error().ToString()};
    }
    Json result = ResultOf(*response);
    if (response->status < 300) return states::TaskSuccess{std::move(result)};
    return states::TaskFailure{"States.Http.StatusCode." + std::to_string(response->status),
                               Redact(ToJsonText(result))};
  }

  states::TaskOutcome Poll(const states::TaskCall& call, const Json& /*resume*/,
                           states::TaskContext& context) override {
    return Start(call, context);
  }

  void Cancel(const states::TaskCall& /*call*/, const Json& /*resume*/,
              states::TaskContext& /*context*/) override {}

 private:
  net::HttpClient http_;
};

}  // namespace

std::unique_ptr<states::TaskExecutor> MakeHttpExecutor() {
  return std::make_unique<HttpExecutor>();
}

}  // namespace muster::task
