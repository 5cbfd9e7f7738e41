#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/http.h"
#include "muster/env.h"
#include "muster/result.h"

namespace muster {

struct AwsCredentials {
  std::string access_key_id;
  std::string secret_access_key;
  std::string session_token = {};        // empty for those of a user
  std::optional<WallTime> expires = {};  // by AWS's clock
};

struct SigV4Scope {
  std::string region;   // "eu-central-1"
  std::string service;  // "es", "aoss", "dynamodb", "s3", ...
};

// What was signed, to hold against what a server says that it computed.
struct SigV4Texts {
  std::string canonical_request;
  std::string string_to_sign;
  std::string authorization;
};

// Signs a request by AWS Signature Version 4: sets the headers Authorization, X-Amz-Date, with a
// session token X-Amz-Security-Token, and for S3 and OpenSearch Serverless (aoss)
// X-Amz-Content-Sha256. Earlier ones of these are replaced, so a request may be signed again.
// Afterwards method, URL, body and the other headers must stay as they are.
//
// All headers are signed but User-Agent, Expect, Transfer-Encoding and X-Amzn-Trace-Id. Characters
// of the query other than letters, digits and `-._~` should be percent-encoded; a `+` is a plus.
//
// `now` is the server's time as far as it is known: AWS refuses more than 5 minutes of difference.
// kInvalid: a URL that SplitHttpUrl refuses.
Result<SigV4Texts> SignRequest(HttpRequest& request, const AwsCredentials& credentials,
                               const SigV4Scope& scope, WallTime now);

}  // namespace muster
