#pragma once

#include <functional>
#include <optional>
#include <string>

#include "net/http.h"
#include "support/http_server.h"

namespace muster::testing {

// A relay in front of an HTTP server on 127.0.0.1 that forwards requests and manipulates them for a
// test. Functions run on the connections' threads.
class HttpRelay {
 public:
  // The response to send instead of the server's; none: forward the request.
  using Before = std::function<std::optional<HttpServerReply>(const HttpServerRequest&)>;
  // Sees the server's response; what it returns, if anything, goes to the client instead.
  using After = std::function<std::optional<HttpServerReply>(const HttpServerRequest&,
                                                             const net::HttpResponse&)>;

  HttpRelay(int target_port, Before before, After after = {});

  int port() const { return server_.port(); }

 private:
  HttpServerReply Handle(const HttpServerRequest& request);

  const std::string target_;
  const Before before_;
  const After after_;
  net::HttpClient client_;
  HttpServer server_;
};

}  // namespace muster::testing
