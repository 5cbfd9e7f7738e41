#pragma once

#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/json.h"
#include "muster/result.h"
#include "net/http.h"

namespace muster::serve {

struct WebRequest {
  std::string method;
  std::string path;                                        // as sent, percent-encoded
  std::vector<std::pair<std::string, std::string>> query;  // decoded
  net::HttpHeaders headers;
  std::string body = {};
  std::string peer = {};  // the address it came from

  // None: no such header, or more than one.
  std::optional<std::string_view> Header(std::string_view name) const;
  bool HasHeader(std::string_view name) const;
  // The value of the first parameter of that name.
  std::optional<std::string> Param(std::string_view name) const;
  // Whether it changes nothing.
  bool IsRead() const { return method == "GET" || method == "HEAD"; }
};

// A response without an end. Used by one thread.
class WebStream {
 public:
  virtual ~WebStream() = default;
  // False: the client is gone or too slow, or the server is stopping. Nothing more can be written.
  virtual bool Write(std::string_view bytes) = 0;
  // Requested when the server stops.
  virtual std::stop_token stop() const = 0;
};

struct WebResponse {
  int status = 200;
  std::string content_type = "application/json";
  std::string body = {};
  net::HttpHeaders headers = {};
  std::function<void(WebStream&)> stream = {};  // instead of the body

  static WebResponse OfJson(const Json& json);
  static WebResponse OfText(int status, std::string text);
  // {"error": {"code", "message", "hint"}} with the status that fits the code.
  static WebResponse OfError(const Error& error);
  static WebResponse OfProblem(int status, std::string_view code, std::string_view message,
                               std::string_view hint = "");
};

// {"code", "message", "hint"}
Json ProblemOf(const Error& error);

}  // namespace muster::serve
