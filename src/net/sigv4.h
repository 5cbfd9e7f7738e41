#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "muster/env.h"
#include "muster/result.h"
#include "net/http.h"

namespace muster::net {

struct AwsCredentials {
  std::string access_key_id;
  std::string secret_access_key;
  std::string session_token = {};        // empty for a user's
  std::optional<WallTime> expires = {};  // by AWS's clock
};

struct SigV4Scope {
  std::string region;   // "eu-central-1"
  std::string service;  // "es", "aoss", "dynamodb", "s3", ...
};

// What was signed, to compare with what a server reports that it computed.
struct SigV4Texts {
  std::string canonical_request;
  std::string string_to_sign;
  std::string authorization;
};

// Signs a request with AWS Signature Version 4: sets the headers Authorization, X-Amz-Date, with a
// session token X-Amz-Security-Token, and for S3 and OpenSearch Serverless (aoss)
// X-Amz-Content-Sha256. Existing ones are replaced, so a request may be signed again. Afterwards
// method, URL, body and the other headers must not change.
//
// All headers are signed except User-Agent, Expect, Transfer-Encoding and X-Amzn-Trace-Id. Query
// characters other than letters, digits and `-._~` should be percent-encoded; a `+` is a plus.
//
// `now` is the server's time as far as known: AWS tolerates a skew of 5 minutes. kInvalid: a URL
// that SplitHttpUrl rejects.
Result<SigV4Texts> SignRequest(HttpRequest& request, const AwsCredentials& credentials,
                               const SigV4Scope& scope, WallTime now);

}  // namespace muster::net
