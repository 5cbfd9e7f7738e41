#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "muster/result.h"
#include "serve/web_message.h"

namespace muster::serve {

struct WebServerOptions {
  std::string address = "127.0.0.1";  // numeric
  int port = 0;                       // 0: a free one
  std::string certificate = {};       // PEM files, both or none: TLS
  std::string key = {};
  int max_connections = 256;
  size_t max_head_bytes = 32 * 1024;
  size_t max_body_bytes = 64 * 1024;
  std::chrono::milliseconds request_timeout{10'000};  // for a whole request
  std::chrono::milliseconds idle_timeout{30'000};     // between requests
  std::chrono::milliseconds write_timeout{10'000};    // without progress
  net::HttpHeaders headers = {};                      // of every answer
};

// Answers requests. Called from many threads at once.
class WebHandler {
 public:
  virtual ~WebHandler() = default;
  // Called before the body is read, which is within its limit; a response refuses the request.
  virtual std::optional<WebResponse> Refuse(const WebRequest& head) = 0;
  virtual WebResponse Handle(const WebRequest& request) = 0;
};

// Serves HTTP/1.1 until it is destroyed, with a thread per connection; beyond the limit a client
// gets a 503. Clients that send or receive too slowly are disconnected.
class WebServer {
 public:
  // kInvalid: bad address or certificate. kUnavailable: the port is taken.
  // `bound` gets the port before the first request.
  static Result<std::unique_ptr<WebServer>> Start(const WebServerOptions& options,
                                                  WebHandler& handler,
                                                  const std::function<void(int port)>& bound);
  virtual ~WebServer() = default;
  virtual int port() const = 0;
};

}  // namespace muster::serve
