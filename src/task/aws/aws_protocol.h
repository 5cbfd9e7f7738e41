#pragma once

#include <string>
#include <string_view>

#include "core/json.h"
#include "muster/result.h"
#include "net/http.h"
#include "task/aws/aws_service.h"

namespace muster::task {

// Calls and answers of AWS services as Step Functions writes them and as they go over the wire.
//
// Step Functions names all parameters and results in PascalCase; services whose own names begin
// with a lower-case letter are translated, but for the keys of tags, environments and other maps.
// Without the services' descriptions an answer in XML is all strings.

// What is sent, but for host and signature: method, path (in `url`), headers and body.
// kInvalid: parameters that the protocol cannot say.
Result<net::HttpRequest> EncodeAwsCall(const AwsService& service, std::string_view action,
                                       const Json& parameters);

// How a time is shown that came as seconds since 1970.
enum class AwsTimes { kText, kMilliseconds };

// The result of a call that succeeded. kCorrupt: the answer is not what the protocol promises.
Result<Json> DecodeAwsAnswer(const AwsService& service, std::string_view action,
                             const net::HttpResponse& response, AwsTimes times);

struct AwsError {
  std::string code;  // "ConditionalCheckFailedException", without namespace
  std::string message;
  int status = 0;
  std::string request_id;
};

// Why a call failed, from an answer of any protocol.
AwsError DecodeAwsError(const net::HttpResponse& response);

// The id that AWS's support asks for; empty if the answer has none.
std::string RequestIdOf(const net::HttpResponse& response);

// "startJobRun" to "StartJobRun" and back; and "StartFlow" to "start-flow".
std::string PascalCase(std::string_view name);
std::string CamelCase(std::string_view name);
std::string KebabCase(std::string_view name);

}  // namespace muster::task
