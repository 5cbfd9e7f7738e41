#include "serve/api.h"

#include <algorithm>
#include <charconv>
#include <chrono>

#include "serve/assets.h"
#include "serve/route.h"
#include "serve/state_metrics.h"

namespace muster::serve {
namespace {

WebResponse Unauthenticated() {
  return WebResponse::OfProblem(401, "unauthenticated", "who are you?",
                                "open the login link that 'muster serve' printed, or send a token "
                                "of its file as Authorization: Bearer");
}

const Asset* FindAsset(const std::string& path) {
  for (const Asset& asset : Assets()) {
    if (asset.path == path) return &asset;
  }
  return nullptr;
}

WebResponse OfAsset(const Asset& asset, const WebRequest& request) {
  WebResponse response{.content_type = asset.content_type};
  response.headers = {{"Cache-Control", "no-cache"}, {"Vary", "Accept-Encoding"}};
  const auto accepted = request.Header("Accept-Encoding");
  if (accepted && accepted->find("gzip") != accepted->npos) {
    response.headers.emplace_back("Content-Encoding", "gzip");
    response.body = asset.packed;
  } else {
    response.body = asset.bytes;
  }
  return response;
}

// Needs no token: it tells nothing that is not in every copy of the program.
bool IsOpen(const std::string& path) {
  return path == "/healthz" || path == "/readyz" || path == "/login" || FindAsset(path) != nullptr;
}

bool IsKnown(const Service& service, const WebRequest& request) {
  if (request.IsRead()) return true;
  if (request.method != "POST") return false;
  return request.path == "/api/v1/logout" || service.IsAction(request.path);
}

// None: it is no number, or not one from `least` to `most`.
std::optional<int64_t> NumberOf(const WebRequest& request, const char* name, int64_t fallback,
                                int64_t least, int64_t most) {
  const auto text = request.Param(name);
  if (!text) return fallback;
  int64_t number = 0;
  const char* end = text->data() + text->size();
  const auto parsed = std::from_chars(text->data(), end, number);
  if (parsed.ec != std::errc() || parsed.ptr != end) return std::nullopt;
  if (number < least || number > most) return std::nullopt;
  return number;
}

// A stream that ends with its caller's session.
class SessionStream final : public WebStream {
 public:
  SessionStream(WebStream& stream, const Access& access, const Caller& caller)
      : stream_(stream), access_(access), caller_(caller) {}

  bool Write(std::string_view bytes) override {
    return access_.MayGoOn(caller_) && stream_.Write(bytes);
  }
  std::stop_token stop() const override { return stream_.stop(); }

 private:
  WebStream& stream_;
  const Access& access_;
  const Caller& caller_;
};

}  // namespace

HttpHeaders SecurityHeaders(bool tls) {
  HttpHeaders headers{
      {"Content-Security-Policy",
       "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
       "connect-src 'self'; font-src 'none'; base-uri 'none'; form-action 'none'; "
       "frame-ancestors 'none'"},
      {"X-Content-Type-Options", "nosniff"},
      {"X-Frame-Options", "DENY"},
      {"Referrer-Policy", "no-referrer"},
      {"Cross-Origin-Opener-Policy", "same-origin"},
      {"Cross-Origin-Resource-Policy", "same-origin"},
      {"Permissions-Policy", "camera=(), geolocation=(), microphone=()"}};
  if (tls) headers.emplace_back("Strict-Transport-Security", "max-age=31536000");
  return headers;
}

std::optional<WebResponse> Api::Refuse(const WebRequest& head) {
  std::optional<WebResponse> refusal = access_->RefuseOrigin(head);
  if (!refusal && !IsKnown(service_, head)) {
    refusal =
        head.method == "POST"
            ? WebResponse::OfProblem(404, "not_found", "there is no such action")
            : WebResponse::OfProblem(405, "method_not_allowed", "this is not to be done here");
  }
  if (!refusal && !(head.IsRead() && IsOpen(head.path)) && !access_->Identify(head)) {
    refusal = Unauthenticated();
  }
  if (!refusal) return std::nullopt;
  metrics_
      .GetCounter("muster_http_refused_total", "Requests that were refused before they were read",
                  {{"status", std::to_string(refusal->status)}})
      .Add();
  if (!head.IsRead()) {
    service_.NoteRefusal("unknown@" + head.peer, head.path, std::to_string(refusal->status));
  }
  refusal->headers.emplace_back("Cache-Control", "no-store");
  return refusal;
}

WebResponse Api::Handle(const WebRequest& request) {
  const auto start = std::chrono::steady_clock::now();
  WebResponse response = Answer(request);
  const bool cached = std::any_of(response.headers.begin(), response.headers.end(),
                                  [](const auto& h) { return h.first == "Cache-Control"; });
  if (!cached) response.headers.emplace_back("Cache-Control", "no-store");
  metrics_
      .GetCounter("muster_http_requests_total", "Requests by status",
                  {{"method", request.method}, {"status", std::to_string(response.status)}})
      .Add();
  metrics_
      .GetHistogram("muster_http_request_seconds", "Until an answer is there",
                    {0.001, 0.005, 0.025, 0.1, 0.5, 2.5})
      .Observe(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  return response;
}

WebResponse Api::Answer(const WebRequest& request) {
  if (request.IsRead()) {
    if (request.path == "/healthz") return WebResponse::OfText(200, "ok\n");
    if (request.path == "/readyz") {
      const Status ready = service_.Ready();
      // Which store it is, is for those with a token.
      return ready ? WebResponse::OfText(200, "ok\n")
                   : WebResponse::OfText(503, "a store does not answer\n");
    }
    if (request.path == "/login") return Login(request);
    if (const Asset* asset = FindAsset(request.path)) return OfAsset(*asset, request);
  }
  auto caller = access_->Identify(request);
  if (!caller) return Unauthenticated();
  if (request.path == "/api/v1/logout" && !request.IsRead()) {
    WebResponse response{.status = 204};
    response.headers = {{"Set-Cookie", access_->Logout(*caller)}};
    return response;
  }
  const auto renewed = access_->Renew(*caller);
  WebResponse response = request.IsRead() ? Get(request, *caller) : Post(request, *caller);
  if (renewed) response.headers.emplace_back("Set-Cookie", *renewed);
  return response;
}

WebResponse Api::Login(const WebRequest& request) const {
  const auto cookie = access_->Login(request.Param("token").value_or(""));
  if (!cookie) return Unauthenticated();
  WebResponse response{.status = 303, .body = ""};
  response.headers = {{"Set-Cookie", *cookie}, {"Location", "/"}};
  return response;
}

WebResponse Api::Get(const WebRequest& request, const Caller& caller) {
  const std::string& path = request.path;
  if (path == "/metrics") return MetricsText(caller);
  if (path == "/api/v1/events") return Events(request, caller);
  if (path == "/api/v1/session") return WebResponse::OfJson(service_.Session(caller));
  if (path == "/api/v1/openapi.yaml") {
    return {.content_type = "application/yaml", .body = std::string(ApiDocument())};
  }
  if (const auto file = MatchPath("/api/v1/dead-letters/{}", path)) {
    return Letters(request, caller, file->front());
  }
  const auto reading = service_.Read(caller, path);
  if (!reading) return WebResponse::OfError(reading.error());
  return {.body = (*reading)->text};
}

WebResponse Api::Post(const WebRequest& request, const Caller& caller) {
  const auto type = request.Header("Content-Type");
  if (!request.body.empty() && (!type || !type->starts_with("application/json"))) {
    return WebResponse::OfProblem(415, "invalid", "the body is to be application/json");
  }
  const auto result = service_.Act(caller, request.path, request.body);
  return result ? WebResponse::OfJson(*result) : WebResponse::OfError(result.error());
}

WebResponse Api::Events(const WebRequest& request, const Caller& caller) {
  std::vector<std::string> topics;
  for (const auto& [name, value] : request.query) {
    if (name == "topic") topics.push_back(value);
  }
  const std::string last(request.Header("Last-Event-ID").value_or(""));
  const auto seat = service_.Follow(caller, topics, last);
  if (!seat && seat.error().code == Code::kFull) {
    WebResponse full =
        WebResponse::OfProblem(503, "too_many_viewers", seat.error().message, seat.error().hint);
    full.headers.emplace_back("Retry-After", "5");
    return full;
  }
  if (!seat) return WebResponse::OfError(seat.error());
  return {.content_type = "text/event-stream",
          .stream = [this, caller, place = *seat](WebStream& stream) {
            SessionStream live(stream, *access_, caller);
            service_.Serve(*place, live);
          }};
}

WebResponse Api::Letters(const WebRequest& request, const Caller& caller, const std::string& file) {
  const auto after = NumberOf(request, "after", 0, 0, INT64_MAX);
  const auto limit = NumberOf(request, "limit", 100, 1, kMaxLetters);
  if (!after || !limit) {
    return WebResponse::OfProblem(400, "invalid", "'after' or 'limit' is no such number");
  }
  const auto letters = service_.ReadLetters(caller, file, *after, static_cast<int>(*limit),
                                            request.Param("signature").value_or(""));
  return letters ? WebResponse::OfJson(*letters) : WebResponse::OfError(letters.error());
}

WebResponse Api::MetricsText(const Caller& caller) {
  metrics_.GetGauge("muster_http_viewers", "Live streams that are open").Set(service_.viewers());
  WebResponse response{.content_type = "text/plain; version=0.0.4; charset=utf-8"};
  response.body = metrics_.Text() + ProcessMetrics();
  const auto overview = service_.Read(caller, "/api/v1/overview");
  if (overview) response.body += StateMetrics(*(*overview)->data);
  return response;
}

}  // namespace muster::serve
