#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include "base/aws_credentials.h"
#include "base/http.h"
#include "base/json.h"
#include "base/opensearch_endpoint.h"
#include "muster/env.h"
#include "muster/result.h"

namespace muster {

// In the "_meta" of the mappings of an index that is a store of ours.
inline constexpr const char* kOpenSearchStoreMark = "muster_schema";

// What a cluster answered.
struct OpenSearchAnswer {
  int status = 0;
  std::string body;
  std::optional<std::chrono::milliseconds> retry_after = {};
  std::optional<WallTime> date = {};  // the server's clock when it began to answer, to the second
};

struct OpenSearchCall {
  std::string method = "GET";
  std::string path;  // from the slash on, percent-encoded, with its query
  std::string body = {};
  std::string content_type = "application/json";
  bool gzip = false;                // send the body compressed
  std::optional<bool> writes = {};  // as HttpRequest::writes
  std::chrono::milliseconds timeout{30'000};
  size_t max_response_bytes = 64 * 1024 * 1024;
};

// Talks to one cluster. Thread-safe; connections are kept. `env` must outlive it.
class OpenSearchClient {
 public:
  OpenSearchClient(OpenSearchEndpoint endpoint, Env& env);

  // Any complete answer, whatever its status; otherwise the errors of HttpClient::Send.
  Result<OpenSearchAnswer> Send(const OpenSearchCall& call, std::stop_token stop = {});

  // The parsed body of an answer with a status below 300; otherwise ErrorOf the answer.
  Result<Json> SendForJson(const OpenSearchCall& call, std::stop_token stop = {});

  // "OpenSearch at https://host:port"
  const std::string& Place() const { return place_; }

  // What an answer with a status of 300 or more means: the server's own reason, and what to do.
  //   401, 403 kPermission (kReadOnly when a block of the index or cluster refuses writes)
  //   404 kNotFound   409 kConflict   429, 502, 503, 504 kUnavailable   other 4xx kInvalid
  // What was sent may nevertheless have been applied after 502 and 504 when it writes:
  // kUnknownOutcome.
  Error ErrorOf(const OpenSearchCall& call, const OpenSearchAnswer& answer) const;

 private:
  Status Authorize(HttpRequest& request, std::stop_token stop);

  const OpenSearchEndpoint endpoint_;
  const std::string place_;
  Env& env_;
  HttpClient http_;
  std::unique_ptr<AwsCredentialChain> aws_;
  // AWS's clock - ours, as of the last refusal: signatures carry AWS's time, however wrong ours is.
  std::atomic<std::chrono::milliseconds> aws_ahead_{};
};

// `name` as a segment of a path of the API: everything but plain characters percent-encoded.
std::string OpenSearchPath(std::string_view name);

}  // namespace muster
