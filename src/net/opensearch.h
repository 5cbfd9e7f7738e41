#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include "core/json.h"
#include "muster/env.h"
#include "muster/result.h"
#include "net/aws_credentials.h"
#include "net/http.h"
#include "net/opensearch_endpoint.h"

namespace muster::net {

// Key in the mappings' "_meta" that marks an index as our store.
inline constexpr const char* kOpenSearchStoreMark = "muster_schema";

// A cluster's response.
struct OpenSearchAnswer {
  int status = 0;
  std::string body;
  std::optional<std::chrono::milliseconds> retry_after = {};  // a minute at most
  std::optional<WallTime> date = {};  // the server's clock at the response's start, to the second
};

struct OpenSearchCall {
  std::string method = "GET";
  std::string path;  // from the slash on, percent-encoded, with the query
  std::string body = {};
  std::string content_type = "application/json";
  bool gzip = false;                // compress the body
  std::optional<bool> writes = {};  // as HttpRequest::writes
  std::chrono::milliseconds timeout{30'000};
  size_t max_response_bytes = 64 * 1024 * 1024;
};

// Client for one cluster. Thread-safe; connections are reused. `env` must outlive it.
class OpenSearchClient {
 public:
  OpenSearchClient(OpenSearchEndpoint endpoint, Env& env);

  // Any complete response, whatever its status; otherwise the errors of HttpClient::Send.
  Result<OpenSearchAnswer> Send(const OpenSearchCall& call, std::stop_token stop = {});

  // The parsed body of a response with a status below 300; otherwise ErrorOf the response.
  Result<Json> SendForJson(const OpenSearchCall& call, std::stop_token stop = {});

  // "OpenSearch at https://host:port"
  const std::string& Place() const { return place_; }

  // The error for a status of 300 or more: the code and hint of OpenSearchError, with the server's
  // own reason.
  Error ErrorOf(const OpenSearchCall& call, const OpenSearchAnswer& answer) const;

 private:
  Status Authorize(HttpRequest& request, std::stop_token stop);

  const OpenSearchEndpoint endpoint_;
  const std::string place_;
  Env& env_;
  HttpClient http_;
  std::unique_ptr<AwsCredentialChain> aws_;
  // AWS's clock minus ours, as of the last rejection: requests are signed with AWS's time, however
  // wrong ours is.
  std::atomic<std::chrono::milliseconds> aws_ahead_{};
};

// `name` as a path segment, percent-encoded.
std::string OpenSearchPath(std::string_view name);

}  // namespace muster::net
