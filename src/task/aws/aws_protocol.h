#pragma once

#include <string>
#include <string_view>

#include "core/json.h"
#include "muster/result.h"
#include "net/http.h"
#include "task/aws/aws_service.h"

namespace muster::task {

// Converts calls and responses of AWS services between Step Functions' form and that on the wire.
//
// Step Functions names all parameters and results in PascalCase. Services whose own names begin
// with a lower-case letter are translated, except for the keys of tags, environments and other
// maps. Without the services' descriptions, a response in XML consists of strings.

// The request, except for host and signature: method, path (in `url`), headers and body. kInvalid:
// parameters that the protocol cannot express.
Result<net::HttpRequest> EncodeAwsCall(const AwsService& service, std::string_view action,
                                       const Json& parameters);

// How a time given as seconds since 1970 is shown.
enum class AwsTimes { kText, kMilliseconds };

// The result of a call that succeeded. kCorrupt: the response violates the protocol.
Result<Json> DecodeAwsAnswer(const AwsService& service, std::string_view action,
                             const net::HttpResponse& response, AwsTimes times);

struct AwsError {
  std::string code;  // "ConditionalCheckFailedException", without namespace
  std::string message;
  int status = 0;
  std::string request_id;
};

// Why a call failed, from a response of any protocol.
AwsError DecodeAwsError(const net::HttpResponse& response);

// The request id for AWS's support; empty if the response has none.
std::string RequestIdOf(const net::HttpResponse& response);

// "startJobRun" to "StartJobRun" and back; and "StartFlow" to "start-flow".
std::string PascalCase(std::string_view name);
std::string CamelCase(std::string_view name);
std::string KebabCase(std::string_view name);

}  // namespace muster::task
