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

namespace muster::net {

// In wire order. Names are case-insensitive.
using HttpHeaders = std::vector<std::pair<std::string, std::string>>;

struct HttpRequest {
  std::string method = "GET";
  std::string url;  // http or https, percent-encoded; sent verbatim, dots included
  HttpHeaders headers = {};
  std::string body = {};

  std::chrono::milliseconds connect_timeout{5'000};  // DNS, connection and TLS together
  std::chrono::milliseconds timeout{30'000};         // total, including connecting
  size_t max_response_bytes = 64 * 1024 * 1024;      // headers and body, and the decoded body

  // Whether it may change something on the server. Defaults to all but GET and HEAD; a search by
  // POST, say, does not.
  std::optional<bool> writes = {};
};

struct HttpResponse {
  int status = 0;
  HttpHeaders headers;
  std::string body;  // decoded; Content-Encoding and Content-Length still describe what was sent

  // The value of the first header of that name.
  std::optional<std::string_view> Header(std::string_view name) const;
};

struct HttpOptions {
  std::string ca_file = {};  // PEM, trusted instead of the system's CAs
  bool verify_tls = true;    // off: the server is not authenticated
  // The client's certificate and its private key, PEM; both or none.
  std::string cert_file = {};
  std::string key_file = {};
  bool use_proxy = true;  // as set by https_proxy, http_proxy and no_proxy
};

// Sends requests over HTTP/1.1, one at a time per calling thread. Connections are reused. Redirects
// are returned like any other response; gzip responses are decoded. Only requests that change
// nothing are ever resent. Thread-safe.
class HttpClient {
 public:
  explicit HttpClient(HttpOptions options = {});
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  // Every complete response is returned, whatever its status. Otherwise:
  //   kUnavailable     nothing was sent, or the request changes nothing and got no complete reply
  //   kUnknownOutcome  sent at least in part, may change something, and got no complete reply
  //   kPermission      the server's certificate is not trusted; nothing was sent
  //   kInvalid         an invalid request, an unreadable CA file or client certificate, or a
  //                    response above the limit: then the server has acted, and the message gives
  //                    the status
  //   kCancelled       within about a second of `stop` or an interrupt; the server may have acted
  // Messages name method, host and path, never query, headers or body.
  Result<HttpResponse> Send(const HttpRequest& request, std::stop_token stop = {});

 private:
  class Pool;
  const HttpOptions options_;
  const std::unique_ptr<Pool> pool_;
};

// The parts of an http or https URL, not decoded; views into `url`.
struct HttpTarget {
  std::string_view scheme;
  std::string_view authority;  // host, or host:port
  std::string_view path;       // may be empty
  std::string_view query;      // without the question mark
};

// Whether a request failed because its response was larger than max_response_bytes.
bool IsAnswerTooLarge(const Error& error);

// kInvalid: another scheme, no host, or a user name: credentials belong in a header, since URLs end
// up in logs.
Result<HttpTarget> SplitHttpUrl(std::string_view url);

// Whether two header names are equal.
bool SameHeaderName(std::string_view a, std::string_view b);

// The Authorization header for a user and password. Registers the password and the value with
// Redact.
std::string BasicAuthorization(std::string_view user, std::string_view password);

// The time of a Date header, to the second: the server's clock when it started to respond.
std::optional<WallTime> ParseHttpDate(std::string_view text);

}  // namespace muster::net
