// Handlers of the routes that are neither views nor actions.

#include "serve/api.h"
#include "serve/api_document.h"
#include "serve/assets.h"
#include "serve/state_metrics.h"

namespace muster::serve {
namespace {

// A stream that ends with its caller's session.
class SessionStream final : public WebStream {
 public:
  SessionStream(WebStream& stream, const Access& access, const Caller& caller)
      : stream_(stream), access_(access), caller_(caller) {}

  bool Write(std::string_view bytes) override {
    return access_.MayContinue(caller_) && stream_.Write(bytes);
  }
  std::stop_token stop() const override { return stream_.stop(); }

 private:
  WebStream& stream_;
  const Access& access_;
  const Caller& caller_;
};

}  // namespace

WebResponse Api::Health(const ApiCall& /*call*/) const { return WebResponse::OfText(200, "ok\n"); }

WebResponse Api::Ready(const ApiCall& /*call*/) const {
  // Which store is down is only for callers with a token.
  return service_.Ready() ? WebResponse::OfText(200, "ok\n")
                          : WebResponse::OfText(503, "a store does not answer\n");
}

WebResponse Api::MetricsText(const ApiCall& /*call*/) const {
  metrics_.GetGauge("muster_http_viewers", "Live streams that are open").Set(service_.viewers());
  WebResponse response{.content_type = "text/plain; version=0.0.4; charset=utf-8"};
  response.body = metrics_.Text() + ProcessMetrics();
  const auto overview = service_.Read("/api/v1/overview");
  if (overview) response.body += StateMetrics(*(*overview)->data);
  return response;
}

WebResponse Api::Document(const ApiCall& /*call*/) const {
  return {.content_type = "application/yaml", .body = ApiDocument()};
}

WebResponse Api::Login(const ApiCall& call) const {
  const auto cookie = access_->Login(call.query.value("token", ""));
  if (!cookie) {
    return WebResponse::OfProblem(401, "unauthenticated", "unknown token",
                                  "open the login link that 'muster serve' printed");
  }
  WebResponse response{.status = 303, .body = ""};
  response.headers = {{"Set-Cookie", *cookie}, {"Location", "/"}};
  return response;
}

WebResponse Api::Session(const ApiCall& call) const {
  return WebResponse::OfJson(service_.Session(call.caller));
}

WebResponse Api::Logout(const ApiCall& call) const {
  WebResponse response{.status = 204};
  response.headers = {{"Set-Cookie", access_->Logout(call.caller)}};
  return response;
}

WebResponse Api::Events(const ApiCall& call) const {
  const auto topics = call.query["topic"].get<std::vector<std::string>>();
  const std::string last(call.request.Header("Last-Event-ID").value_or(""));
  const auto subscription = service_.Follow(topics, last);
  if (!subscription && subscription.error().code == Code::kFull) {
    WebResponse full = WebResponse::OfProblem(503, "too_many_viewers", subscription.error().message,
                                              subscription.error().hint);
    full.headers.emplace_back("Retry-After", "5");
    return full;
  }
  if (!subscription) return WebResponse::OfError(subscription.error());
  return {.content_type = "text/event-stream",
          .stream = [this, caller = call.caller, place = *subscription](WebStream& stream) {
            SessionStream live(stream, *access_, caller);
            service_.Serve(*place, live);
          }};
}

WebResponse Api::Letters(const ApiCall& call) const {
  const auto letters = service_.ReadLetters(call.names[0], call.query["after"].get<int64_t>(),
                                            static_cast<int>(call.query["limit"].get<int64_t>()),
                                            call.query.value("signature", ""));
  return letters ? WebResponse::OfJson(*letters) : WebResponse::OfError(letters.error());
}

WebResponse Api::PageFile(const ApiCall& call) const {
  for (const Asset& asset : Assets()) {
    if (asset.path != call.request.path) continue;
    WebResponse response{.content_type = asset.content_type};
    response.headers = {{"Cache-Control", "no-cache"}, {"Vary", "Accept-Encoding"}};
    const auto accepted = call.request.Header("Accept-Encoding");
    const bool packed = accepted && accepted->find("gzip") != accepted->npos;
    if (packed) response.headers.emplace_back("Content-Encoding", "gzip");
    response.body = packed ? std::string_view(asset.packed) : asset.bytes;
    return response;
  }
  return WebResponse::OfProblem(404, "not_found", "not found: " + call.request.path);
}

}  // namespace muster::serve
