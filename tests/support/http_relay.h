#pragma once

#include <functional>
#include <optional>
#include <string>

#include "base/http.h"
#include "support/http_server.h"

namespace muster::testing {

// Stands before an HTTP server on 127.0.0.1, passes requests on, and does to them what a test
// wants. Functions run in the threads of the connections.
class HttpRelay {
 public:
  // What is answered in the server's place; none: the request is passed on.
  using Before = std::function<std::optional<HttpServerReply>(const HttpServerRequest&)>;
  // Sees what the server answered; what it returns, if anything, goes to the client instead.
  using After =
      std::function<std::optional<HttpServerReply>(const HttpServerRequest&, const HttpResponse&)>;

  HttpRelay(int target_port, Before before, After after = {});

  int port() const { return server_.port(); }

 private:
  HttpServerReply Handle(const HttpServerRequest& request);

  const std::string target_;
  const Before before_;
  const After after_;
  HttpClient client_;
  HttpServer server_;
};

}  // namespace muster::testing
