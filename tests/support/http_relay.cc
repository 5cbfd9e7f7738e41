#include "support/http_relay.h"

namespace muster::testing {

HttpRelay::HttpRelay(int target_port, Before before, After after)
    : target_("http://127.0.0.1:" + std::to_string(target_port)),
      before_(std::move(before)),
      after_(std::move(after)),
      client_(net::HttpOptions{.use_proxy = false}),
      server_([this](const HttpServerRequest& request) { return Handle(request); }) {}

HttpServerReply HttpRelay::Handle(const HttpServerRequest& request) {
  if (before_) {
    if (auto reply = before_(request)) return *reply;
  }
  net::HttpRequest passed{.method = request.method, .url = target_ + request.target};
  passed.body = request.body;
  for (const char* name : {"Content-Type", "Authorization"}) {
    const std::string value = request.Header(name);
    if (!value.empty()) passed.headers.emplace_back(name, value);
  }
  const auto response = client_.Send(passed);
  if (!response) return CloseWithoutAnswer();
  if (after_) {
    if (auto reply = after_(request, *response)) return *reply;
  }
  return Answer(response->status, response->body, {{"Content-Type", "application/json"}});
}

}  // namespace muster::testing
