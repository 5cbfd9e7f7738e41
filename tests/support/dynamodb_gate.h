#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <string>

#include "core/mutex.h"
#include "net/http.h"
#include "support/http_server.h"

namespace muster::testing {

// A relay in front of DynamoDB Local that adds what it lacks: throttling, lost requests and
// responses, a lagging index. Thread-safe.
class DynamoDbGate {
 public:
  // What happens to a request; none: it is forwarded, and its response returned.
  using Rule = std::function<std::optional<HttpServerReply>(const std::string& operation,
                                                            const HttpServerRequest& request)>;

  explicit DynamoDbGate(int server_port);

  int port() const { return server_.port(); }

  void SetRule(Rule rule);

  // The server's response to a request, for rules.
  HttpServerReply PassOn(const HttpServerRequest& request);

  // The next `count` requests of an operation get `error`, in DynamoDB's format, and are not
  // forwarded.
  void Refuse(const std::string& operation, const std::string& error, int count);

  // The next request of an operation is forwarded, `then` happens, and its response is lost.
  void LoseAnswer(
      const std::string& operation, std::function<void()> then = [] {});

  // The next request of an operation is lost.
  void LoseRequest(const std::string& operation);

  int requests() const { return requests_; }
  int conflicts() const { return conflicts_; }  // conditions that failed

 private:
  HttpServerReply Handle(const HttpServerRequest& request);

  const int server_port_;
  net::HttpClient client_;
  Mutex mutex_;
  Rule rule_ GUARDED_BY(mutex_);
  std::atomic<int> requests_ = 0;
  std::atomic<int> conflicts_ = 0;
  HttpServer server_;
};

// An error in DynamoDB's format.
HttpServerReply DynamoDbError(int status, const std::string& type, const std::string& message);

}  // namespace muster::testing
