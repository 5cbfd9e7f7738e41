#include "task/aws/aws_service.h"

#include <algorithm>
#include <array>

namespace muster::task {
namespace {

using enum AwsService::Protocol;

constexpr AwsService kServices[] = {
#include "task/aws/aws_services.inc"
    {"appflow", "Appflow", "appflow", "appflow", kRestByName, "", true, "ATV",
     "CreateFlow=clientToken StartFlow=clientToken UpdateFlow=clientToken "},
};

}  // namespace

const AwsService* FindAwsService(std::string_view name) {
  const auto* found = std::find_if(std::begin(kServices), std::end(kServices),
                                   [&](const AwsService& service) { return service.name == name; });
  return found == std::end(kServices) ? nullptr : found;
}

std::string_view TokenMember(const AwsService& service, std::string_view action) {
  const std::string wanted = std::string(action) + "=";
  std::string_view rest = service.tokens;
  while (!rest.empty()) {
    const std::string_view entry = rest.substr(0, rest.find(' '));
    if (entry.starts_with(wanted)) return entry.substr(wanted.size());
    rest.remove_prefix(std::min(rest.size(), entry.size() + 1));
  }
  return {};
}

bool IsDeclaredError(const AwsService& service, std::string_view code) {
  constexpr std::array kCommon = {"AccessDenied",
                                  "AccessDeniedException",
                                  "ExpiredToken",
                                  "ExpiredTokenException",
                                  "IncompleteSignature",
                                  "IncompleteSignatureException",
                                  "InternalFailure",
                                  "InvalidClientTokenId",
                                  "InvalidSignatureException",
                                  "MissingAuthenticationToken",
                                  "MissingAuthenticationTokenException",
                                  "OptInRequired",
                                  "RequestExpired",
                                  "SerializationException",
                                  "ServiceUnavailable",
                                  "SignatureDoesNotMatch",
                                  "Throttling",
                                  "ThrottlingException",
                                  "UnknownOperationException",
                                  "UnrecognizedClientException",
                                  "ValidationError",
                                  "ValidationException"};
  if (std::find(kCommon.begin(), kCommon.end(), code) == kCommon.end()) return true;
  return code.ends_with("Exception") && service.declared.find(code[0]) != std::string_view::npos &&
         (code == "AccessDeniedException" || code == "ThrottlingException" ||
          code == "ValidationException");
}

}  // namespace muster::task
