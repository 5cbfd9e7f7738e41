#pragma once

#include <memory>

#include "muster/states.h"

namespace muster::task {

// Calls HTTP APIs, for the resource `arn:aws:states:::http:invoke` and, as its short name,
// `muster:http`, with Step Functions' parameters:
//   {"ApiEndpoint": "https://api.example.com/users",
//    "Method": "POST",
//    "Headers": {"Authorization": "Bearer ${env:API_TOKEN}"},
//    "QueryParameters": {"page": 1, "tag": ["a", "b"]},
//    "RequestBody": {…}}
// Values of Headers may hold secret references. A body that is not a string is sent as JSON, or as
// a form when Content-Type says so. An EventBridge connection (Authentication) is not supported.
//
// The result is {"StatusCode": 200, "StatusText": "OK", "Headers": {NAME: [VALUE, …]},
// "ResponseBody": …}; a body that is JSON by its Content-Type is parsed.
//
// Requests that may change something carry the call's token as Idempotency-Key.
//
// Failures: States.Http.StatusCode.N for a status of 300 or more, with the answer as the cause;
// States.Http.Socket without an answer; States.Runtime for a request that cannot be sent, such as
// one with an invalid URL; States.DataLimitExceeded for an answer of more than 256 KiB;
// States.Timeout.
std::unique_ptr<states::TaskExecutor> MakeHttpExecutor();

}  // namespace muster::task
