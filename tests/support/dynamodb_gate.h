#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <optional>
#include <string>

#include "base/http.h"
#include "support/http_server.h"

namespace muster::testing {

// Stands before DynamoDB Local and does what that never does: throttle, lose requests and answers,
// show an index that is behind. Thread-safe.
class DynamoDbGate {
 public:
  // What happens to a request; nothing: it is passed on, and its answer back.
  using Rule = std::function<std::optional<HttpServerReply>(const std::string& operation,
                                                            const HttpServerRequest& request)>;

  explicit DynamoDbGate(int server_port);

  int port() const { return server_.port(); }

  void SetRule(Rule rule);

  // The server's answer to a request, for rules.
  HttpServerReply PassOn(const HttpServerRequest& request);

  // The next `count` requests of an operation get `error`, as DynamoDB words it, and reach nobody.
  void Refuse(const std::string& operation, const std::string& error, int count);

  // The next request of an operation is passed on, `then` happens, and its answer is lost.
  void LoseAnswer(
      const std::string& operation, std::function<void()> then = [] {});

  // The next request of an operation is lost.
  void LoseRequest(const std::string& operation);

  int requests() const { return requests_; }
  int conflicts() const { return conflicts_; }  // conditions that failed

 private:
  HttpServerReply Handle(const HttpServerRequest& request);

  const int server_port_;
  HttpClient client_;
  std::mutex mutex_;
  Rule rule_;
  std::atomic<int> requests_ = 0;
  std::atomic<int> conflicts_ = 0;
  HttpServer server_;
};

// An error as DynamoDB answers it.
HttpServerReply DynamoDbError(int status, const std::string& type, const std::string& message);

}  // namespace muster::testing
