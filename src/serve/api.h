#pragma once

#include <optional>
#include <string>

#include "core/metrics.h"
#include "muster/env.h"
#include "serve/access.h"
#include "serve/routes.h"
#include "serve/service.h"
#include "serve/web_server.h"

namespace muster::serve {

// A request that has found its route.
struct ApiCall {
  const WebRequest& request;
  const Caller& caller;  // anonymous on an open route
  const Names& names;    // the values in its path
  const Json& query;     // the parameters its route knows
};

// The service over HTTP, by the table of routes.
class Api final : public WebHandler {
 public:
  // All must outlive it.
  Api(Service& service, Metrics& metrics, Env& env)
      : service_(service), metrics_(metrics), env_(env) {}

  // Call once, before the first request.
  void Open(const Access& access) { access_.emplace(access); }

  std::optional<WebResponse> Refuse(const WebRequest& head) override;
  WebResponse Handle(const WebRequest& request) override;

 private:
  friend class RouteTable;

  // Handlers of routes that are neither views nor actions.
  WebResponse Health(const ApiCall& call) const;
  WebResponse Ready(const ApiCall& call) const;
  WebResponse MetricsText(const ApiCall& call) const;
  WebResponse Document(const ApiCall& call) const;
  WebResponse Login(const ApiCall& call) const;
  WebResponse Session(const ApiCall& call) const;
  WebResponse Logout(const ApiCall& call) const;
  WebResponse Events(const ApiCall& call) const;
  WebResponse Letters(const ApiCall& call) const;
  WebResponse PageFile(const ApiCall& call) const;

  std::optional<WebResponse> RefuseRoute(const WebRequest& head) const;
  WebResponse Dispatch(const WebRequest& request);
  WebResponse Call(const Route& route, const Names& names, const WebRequest& request,
                   const Caller& caller);

  Service& service_;
  Metrics& metrics_;
  Env& env_;
  std::optional<Access> access_;
};

// Headers of every response: restrictions on what a browser may do with it.
net::HttpHeaders SecurityHeaders(bool tls);

}  // namespace muster::serve
