#include "support/dynamodb_gate.h"

#include <memory>

namespace muster::testing {
namespace {

std::string OperationOf(const HttpServerRequest& request) {
  const std::string target = request.Header("X-Amz-Target");
  return target.substr(target.find('.') + 1);
}

}  // namespace

HttpServerReply DynamoDbError(int status, const std::string& type, const std::string& message) {
  return Answer(status, R"({"__type":"com.amazonaws.dynamodb.v20120810#)" + type +
                            R"(","message":")" + message + "\"}");
}

DynamoDbGate::DynamoDbGate(int server_port)
    : server_port_(server_port),
      client_(net::HttpOptions{.use_proxy = false}),
      server_([this](const HttpServerRequest& request) { return Handle(request); }) {}

void DynamoDbGate::SetRule(Rule rule) {
  const MutexLock lock(mutex_);
  rule_ = std::move(rule);
}

HttpServerReply DynamoDbGate::Handle(const HttpServerRequest& request) {
  ++requests_;
  Rule rule;
  {
    const MutexLock lock(mutex_);
    rule = rule_;
  }
  if (rule) {
    if (auto reply = rule(OperationOf(request), request)) return *std::move(reply);
  }
  return PassOn(request);
}

HttpServerReply DynamoDbGate::PassOn(const HttpServerRequest& request) {
  net::HttpRequest copy{.method = request.method,
                        .url = "http://127.0.0.1:" + std::to_string(server_port_) + request.target,
                        .body = request.body};
  for (const char* name : {"X-Amz-Target", "Content-Type", "Authorization", "X-Amz-Date"}) {
    copy.headers.emplace_back(name, request.Header(name));
  }
  const auto answer = client_.Send(copy);
  if (!answer) return CloseWithoutAnswer();
  if (answer->body.find("ConditionalCheckFailedException") != std::string::npos) ++conflicts_;
  std::vector<std::pair<std::string, std::string>> headers;
  if (const auto date = answer->Header("Date")) headers.emplace_back("Date", *date);
  return Answer(answer->status, answer->body, headers);
}

void DynamoDbGate::Refuse(const std::string& operation, const std::string& error, int count) {
  auto left = std::make_shared<std::atomic<int>>(count);
  SetRule([=](const std::string& asked, const HttpServerRequest&) {
    const bool refuse = asked == operation && (*left)-- > 0;
    return refuse ? std::optional(DynamoDbError(400, error, "by the gate")) : std::nullopt;
  });
}

void DynamoDbGate::LoseAnswer(const std::string& operation, std::function<void()> then) {
  auto lost = std::make_shared<std::atomic<bool>>(false);
  SetRule([=, this](const std::string& asked,
                    const HttpServerRequest& request) -> std::optional<HttpServerReply> {
    if (asked != operation || lost->exchange(true)) return std::nullopt;
    PassOn(request);
    then();
    return CloseWithoutAnswer();
  });
}

void DynamoDbGate::LoseRequest(const std::string& operation) {
  auto lost = std::make_shared<std::atomic<bool>>(false);
  SetRule([=](const std::string& asked, const HttpServerRequest&) {
    const bool lose = asked == operation && !lost->exchange(true);
    return lose ? std::optional(CloseWithoutAnswer()) : std::nullopt;
  });
}

}  // namespace muster::testing
