#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "muster/env.h"
#include "muster/result.h"

namespace muster {

// In the order they are sent or came. Names are compared without regard to case.
using HttpHeaders = std::vector<std::pair<std::string, std::string>>;

struct HttpRequest {
  std::string method = "GET";
  std::string url;  // http or https, percent-encoded; sent exactly as written, dots and all
  HttpHeaders headers = {};
  std::string body = {};

  std::chrono::milliseconds connect_timeout{5'000};  // name, connection and TLS together
  std::chrono::milliseconds timeout{30'000};         // everything, connecting included
  size_t max_response_bytes = 64 * 1024 * 1024;      // headers and body, and the decoded body

  // Whether it may change something at the server. By default all but GET and HEAD do; a search by
  // POST, say, does not.
  std::optional<bool> writes = {};
};

struct HttpResponse {
  int status = 0;
  HttpHeaders headers;
  std::string body;  // decoded; Content-Encoding and Content-Length still tell what was sent

  // The value of the first header of that name.
  std::optional<std::string_view> Header(std::string_view name) const;
};

struct HttpOptions {
  std::string ca_file = {};  // PEM, trusted instead of the system's authorities
  bool verify_tls = true;    // off: anybody may answer in the server's name
  bool use_proxy = true;     // the one that https_proxy, http_proxy and no_proxy name, if any
};

// Sends requests over HTTP/1.1, one at a time per calling thread. Connections are kept and used
// again. Redirects are answers like any other; answers compressed by gzip are decoded. Nothing is
// ever sent twice, unless it changes nothing. Thread-safe.
class HttpClient {
 public:
  explicit HttpClient(HttpOptions options = {});
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  // Every complete answer is a response, whatever its status. Otherwise:
  //   kUnavailable     nothing was sent, or the request changes nothing and had no complete answer
  //   kUnknownOutcome  it was sent, at least in part, may change something, and had none
  //   kPermission      the server's certificate is not trusted; nothing was sent
  //   kInvalid         no valid request, a CA file that cannot be read; or an answer above the
  //                    limit: then the server has acted, and the message says with which status
  //   kCancelled       within about a second of `stop` or an interrupt; a request that was sent may
  //   have acted
  // Messages name method, host and path, never query, headers or body.
  Result<HttpResponse> Send(const HttpRequest& request, std::stop_token stop = {});

 private:
  class Pool;
  const HttpOptions options_;
  const std::unique_ptr<Pool> pool_;
};

// The parts of an http or https URL as they are written, not decoded. They refer to `url`.
struct HttpTarget {
  std::string_view scheme;
  std::string_view authority;  // host, or host:port
  std::string_view path;       // may be empty
  std::string_view query;      // without the question mark
};

// kInvalid for other schemes, no host, or a user name: credentials belong into a header, since URLs
// end up in logs.
Result<HttpTarget> SplitHttpUrl(std::string_view url);

// Whether two names of headers are the same.
bool SameHeaderName(std::string_view a, std::string_view b);

// The value of an Authorization header for a user and password. Redact knows the password and the
// value from here on.
std::string BasicAuthorization(std::string_view user, std::string_view password);

// The time of a Date header, to the second: the server's clock when it began to answer.
std::optional<WallTime> ParseHttpDate(std::string_view text);

}  // namespace muster
