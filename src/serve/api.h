#pragma once

#include <optional>
#include <string>

#include "base/metrics.h"
#include "serve/access.h"
#include "serve/service.h"
#include "serve/web_server.h"

namespace muster::serve {

// The service over HTTP: docs/api/openapi.yaml and the page. Paths match exactly, and what is not
// known is refused.
class Api final : public WebHandler {
 public:
  Api(Service& service, Metrics& metrics) : service_(service), metrics_(metrics) {}

  // To be called once, before the first request.
  void Open(const Access& access) { access_.emplace(access); }

  std::optional<WebResponse> Refuse(const WebRequest& head) override;
  WebResponse Handle(const WebRequest& request) override;

 private:
  WebResponse Answer(const WebRequest& request);
  WebResponse Login(const WebRequest& request) const;
  WebResponse Get(const WebRequest& request, const Caller& caller);
  WebResponse Post(const WebRequest& request, const Caller& caller);
  WebResponse Events(const WebRequest& request, const Caller& caller);
  WebResponse Letters(const WebRequest& request, const Caller& caller, const std::string& file);
  WebResponse MetricsText(const Caller& caller);

  Service& service_;
  Metrics& metrics_;
  std::optional<Access> access_;
};

// The headers of every answer: what a browser must not do with it.
HttpHeaders SecurityHeaders(bool tls);

}  // namespace muster::serve
