#include "task/aws/aws_calls.h"

#include <algorithm>
#include <array>

#include "core/sha256.h"

namespace muster::task {
namespace {

constexpr std::string_view kClientError = ".SdkClientException";

bool OnlyReads(std::string_view action) {
  constexpr std::array kReads = {"Get", "List", "Describe", "BatchGet", "Query", "Scan", "Search"};
  return std::any_of(kReads.begin(), kReads.end(),
                     [&](const char* prefix) { return action.starts_with(prefix); });
}

// No usable answer.
states::TaskFailure NotSent(const AwsNaming& naming, const Error& error) {
  // Without credentials or a region, nothing was sent.
  const bool sent = error.code != Code::kInvalid && error.code != Code::kNotFound;
  return {std::string(naming.prefix) + std::string(kClientError),
          (sent ? "Unable to execute HTTP request: " : "") + error.ToString()};
}

states::TaskFailure Refused(const AwsService& service, const AwsNaming& naming,
                            const AwsError& error) {
  std::string name = error.code;
  if (!IsDeclaredError(service, name) || name.starts_with("HttpStatus")) {
    name =
        naming.optimised ? std::string(naming.general) : std::string(naming.prefix) + "Exception";
  } else if (!name.ends_with("Exception")) {
    name += "Exception";
  }
  const std::string status = std::to_string(error.status);
  std::string cause = error.message;
  if (naming.optimised) {
    cause += " (Service: " + std::string(naming.service) + "; Status Code: " + status +
             "; Error Code: " + error.code + "; Request ID: " + error.request_id + "; Proxy: null)";
  } else {
    cause += " (Service: " + std::string(naming.service) + ", Status Code: " + status +
             ", Request ID: " + error.request_id + ")";
  }
  return {std::string(naming.prefix) + "." + name, std::move(cause)};
}

}  // namespace

AwsNaming SdkNaming(const AwsService& service) {
  return {service.error_name, service.error_name, "", false};
}

OrFailure<net::HttpResponse> AwsCalls::Send(const AwsService& service,
                                            const net::HttpRequest& request, bool repeatable,
                                            const AwsNaming& naming, std::stop_token stop) {
  auto response = client_.Send({service.name, service.host, service.signing}, request, repeatable,
                               std::move(stop));
  if (!response) return Unexpected(NotSent(naming, response.error()));
  if (response->status < 400) return *std::move(response);
  return Unexpected(Refused(service, naming, DecodeAwsError(*response)));
}

OrFailure<AwsReply> AwsCalls::Call(const AwsService& service, std::string_view action,
                                   Json parameters, const AwsNaming& naming,
                                   const std::string& token, std::stop_token stop) {
  bool repeatable = OnlyReads(action);
  if (const std::string_view member = TokenMember(service, action);
      !member.empty() && (parameters.is_object() || parameters.is_null())) {
    const std::string name = PascalCase(member);
    if (!parameters.contains(name)) parameters[name] = UuidOf(token);
    repeatable = true;
  }
  auto request = EncodeAwsCall(service, action, parameters);
  if (!request) {
    return Unexpected(states::TaskFailure{"States.Runtime", request.error().ToString()});
  }
  if (OnlyReads(action)) request->writes = false;
  auto response = Send(service, *request, repeatable, naming, std::move(stop));
  if (!response) return Unexpected(std::move(response).error());
  auto body = DecodeAwsAnswer(service, action, *response,
                              naming.optimised ? AwsTimes::kMilliseconds : AwsTimes::kText);
  if (!body) return Unexpected(NotSent(naming, body.error()));
  return AwsReply{*std::move(body), *std::move(response)};
}

bool IsPassingFailure(const states::TaskFailure& failure) {
  return failure.error.ends_with(kClientError) ||
         failure.error.find("Throttl") != std::string::npos ||
         failure.error.find("TooManyRequests") != std::string::npos ||
         failure.cause.find("Status Code: 5") != std::string::npos;
}

std::string UuidOf(std::string_view token) {
  std::string hex = Sha256Hex(token).substr(0, 32);
  hex[12] = '4';
  hex[16] = "89ab"[(hex[16] >= 'a' ? hex[16] - 'a' + 10 : hex[16] - '0') % 4];
  for (const size_t dash : {8, 13, 18, 23}) hex.insert(dash, "-");
  return hex;
}

void AddSdkMetadata(Json& result, const net::HttpResponse& response) {
  Json all = Json::object();
  Json first = Json::object();
  for (const auto& [name, value] : response.headers) {
    all[name].push_back(value);
    if (!first.contains(name)) first[name] = value;
  }
  result["SdkHttpMetadata"] = {{"AllHttpHeaders", std::move(all)},
                               {"HttpHeaders", std::move(first)},
                               {"HttpStatusCode", response.status}};
  result["SdkResponseMetadata"] = {{"RequestId", RequestIdOf(response)}};
}

}  // namespace muster::task
