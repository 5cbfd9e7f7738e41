#include "serve/api.h"

#include <algorithm>
#include <chrono>

namespace muster::serve {
namespace {

WebResponse Unauthenticated() {
  return WebResponse::OfProblem(401, "unauthenticated", "authentication required",
                                "open the login link that 'muster serve' printed, or send a token "
                                "from its token file as Authorization: Bearer");
}

WebResponse NotFound(const std::string& path) {
  return WebResponse::OfProblem(404, "not_found", "not found: " + path, "see /api/v1/openapi.yaml");
}

WebResponse MethodNotAllowed(const std::string& allowed) {
  WebResponse response = WebResponse::OfProblem(405, "method_not_allowed", "method not allowed",
                                                "this path takes " + allowed);
  response.headers.emplace_back("Allow", allowed);
  return response;
}

bool HasHeader(const WebResponse& response, std::string_view name) {
  return std::any_of(response.headers.begin(), response.headers.end(),
                     [&](const auto& header) { return header.first == name; });
}

}  // namespace

net::HttpHeaders SecurityHeaders(bool tls) {
  net::HttpHeaders headers{
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

// 401 comes before 404 and 405: unauthenticated callers must not learn which paths exist.
std::optional<WebResponse> Api::RefuseRoute(const WebRequest& head) const {
  const RouteMatch match = FindRoute(head.method, head.path);
  const bool open = match.route != nullptr && !match.route->role;
  if (!open && !access_->Identify(head)) return Unauthenticated();
  if (match.route != nullptr) return std::nullopt;
  return match.allowed.empty() ? NotFound(head.path) : MethodNotAllowed(match.allowed);
}

std::optional<WebResponse> Api::Refuse(const WebRequest& head) {
  std::optional<WebResponse> refusal = access_->RefuseOrigin(head);
  if (!refusal) refusal = RefuseRoute(head);
  if (!refusal) return std::nullopt;
  metrics_
      .GetCounter("muster_http_refused_total", "Requests refused before their body was read",
                  {{"status", std::to_string(refusal->status)}})
      .Add();
  if (!head.IsRead()) {
    service_.NoteRefusal("unknown@" + head.peer, head.path, std::to_string(refusal->status));
  }
  refusal->headers.emplace_back("Cache-Control", "no-store");
  return refusal;
}

WebResponse Api::Handle(const WebRequest& request) {
  const MonoTime start = env_.MonoNow();
  WebResponse response = Dispatch(request);
  if (!HasHeader(response, "Cache-Control")) {
    response.headers.emplace_back("Cache-Control", "no-store");
  }
  metrics_
      .GetCounter("muster_http_requests_total", "Requests by status",
                  {{"method", request.method}, {"status", std::to_string(response.status)}})
      .Add();
  metrics_
      .GetHistogram("muster_http_request_seconds", "Time until the response is ready",
                    {0.001, 0.005, 0.025, 0.1, 0.5, 2.5})
      .Observe(std::chrono::duration<double>(env_.MonoNow() - start).count());
  return response;
}

WebResponse Api::Dispatch(const WebRequest& request) {
  const RouteMatch match = FindRoute(request.method, request.path);
  if (match.route == nullptr) return NotFound(request.path);
  if (!match.route->role) return Call(*match.route, match.names, request, {});
  auto caller = access_->Identify(request);
  if (!caller) return Unauthenticated();  // the session has ended since Refuse
  const auto renewed = access_->Renew(*caller);
  // Viewers may preview an action; the service refuses the rest of it.
  WebResponse response =
      match.route->IsAction() || match.route->IsOpenTo(caller->role)
          ? Call(*match.route, match.names, request, *caller)
          : WebResponse::OfError(Error{Code::kPermission, "not open to viewers",
                                       "the operator's token is in the server's token file"});
  if (renewed && !HasHeader(response, "Set-Cookie")) {
    response.headers.emplace_back("Set-Cookie", *renewed);
  }
  return response;
}

WebResponse Api::Call(const Route& route, const Names& names, const WebRequest& request,
                      const Caller& caller) {
  if (route.IsLive()) {
    const auto reading = service_.Read(request.path);
    return reading ? WebResponse{.body = (*reading)->text} : WebResponse::OfError(reading.error());
  }
  if (route.IsAction()) {
    const auto type = request.Header("Content-Type");
    if (!request.body.empty() && (!type || !type->starts_with("application/json"))) {
      return WebResponse::OfProblem(415, "invalid", "the body must be application/json");
    }
    const auto body = ReadBody(request.body, route.fields);
    if (!body) return WebResponse::OfError(body.error());
    const auto result = service_.Act(caller, request.path, route, {names, *body});
    return result ? WebResponse::OfJson(*result) : WebResponse::OfError(result.error());
  }
  const auto query = ReadQuery(request, route.fields);
  if (!query) return WebResponse::OfError(query.error());
  return (this->*std::get<Answer>(route.handler))({request, caller, names, *query});
}

}  // namespace muster::serve
