#include <algorithm>
#include <chrono>

#include "core/url.h"
#include "task/aws/aws_jobs.h"

namespace muster::task {
namespace {

using namespace std::chrono_literals;

constexpr AwsNaming kNaming{"Lambda", "AWSLambda", "AWSLambdaException"};

// Lambda has a REST API; only Invoke is called.
constexpr AwsService kLambda{.name = "lambda",
                             .error_name = "Lambda",
                             .host = "lambda",
                             .signing = "lambda",
                             .protocol = AwsService::Protocol::kRestByName,
                             .version = "",
                             .camel_case = false,
                             .declared = "",
                             .tokens = ""};

std::string TextOr(const Json& input, const char* name, const std::string& otherwise) {
  const auto found = input.find(name);
  return found != input.end() && found->is_string() ? found->get<std::string>() : otherwise;
}

// A function's result; text that is not JSON is returned as a string.
Json PayloadOf(const std::string& body) {
  if (body.empty()) return nullptr;
  Json value = Json::parse(body, nullptr, false);
  return value.is_discarded() ? Json(body) : value;
}

}  // namespace

bool IsLambdaFunction(std::string_view resource) {
  return resource.starts_with("arn:") && resource.find(":lambda:") != std::string_view::npos &&
         resource.find(":function:") != std::string_view::npos;
}

states::TaskOutcome InvokeLambda(AwsCalls& calls, const states::TaskCall& call,
                                 std::stop_token stop) {
  const bool direct = IsLambdaFunction(call.resource);
  const Json settings = direct ? Json{{"FunctionName", call.resource}} : call.input;
  if (!settings.is_object() || TextOr(settings, "FunctionName", "").empty()) {
    return states::TaskFailure{"States.Runtime", "lambda:invoke needs the parameter FunctionName"};
  }
  const Json payload = direct ? call.input : settings.value("Payload", Json());
  net::HttpRequest request{.method = "POST",
                           .url = "/2015-03-31/functions/" +
                                  PercentEncode(TextOr(settings, "FunctionName", "")) +
                                  "/invocations",
                           .body = payload.is_null() && !direct ? "" : ToJsonText(payload)};
  if (const std::string qualifier = TextOr(settings, "Qualifier", ""); !qualifier.empty()) {
    request.url += "?Qualifier=" + PercentEncode(qualifier);
  }
  request.headers = {
      {"Content-Type", "application/json"},
      {"X-Amz-Invocation-Type", TextOr(settings, "InvocationType", "RequestResponse")}};
  if (settings.contains("LogType")) {
    request.headers.emplace_back("X-Amz-Log-Type", TextOr(settings, "LogType", ""));
  }
  if (settings.contains("ClientContext")) {
    request.headers.emplace_back("X-Amz-Client-Context", TextOr(settings, "ClientContext", ""));
  }
  // The longest that a function may run, plus a margin.
  request.timeout =
      std::min<std::chrono::milliseconds>(call.timeout.value_or(15min) + 10s, 15min + 10s);
  auto response = calls.Send(kLambda, request, false, kNaming, std::move(stop));
  if (!response) return std::move(response).error();
  Json answer = PayloadOf(response->body);
  if (response->Header("X-Amz-Function-Error")) {
    const std::string type = answer.is_object() ? TextOr(answer, "errorType", "") : "";
    return states::TaskFailure{type.empty() ? "Lambda.Unknown" : type, response->body};
  }
  if (direct) return states::TaskSuccess{std::move(answer)};
  Json result = {
      {"ExecutedVersion", response->Header("X-Amz-Executed-Version").value_or("$LATEST")},
      {"Payload", std::move(answer)}};
  if (const auto log = response->Header("X-Amz-Log-Result")) result["LogResult"] = *log;
  AddSdkMetadata(result, *response);
  result["StatusCode"] = response->status;
  return states::TaskSuccess{std::move(result)};
}

}  // namespace muster::task
