#pragma once

#include <mutex>
#include <stop_token>
#include <string>

#include "base/http.h"
#include "base/json.h"
#include "base/url.h"
#include "muster/env.h"
#include "muster/result.h"

namespace muster {

// How to log in: by client credentials (id and secret) or, if there is a key, as a user by a JWT.
struct SalesforceLogin {
  std::string client_id;
  std::string client_secret;
  std::string user;
  std::string key;  // PEM
  std::string audience = "https://login.salesforce.com";
};

// Speaks to one org of Salesforce by its REST API. Logs in when it first needs to, and again when
// the session has ended. What fails for a moment is tried again with growing pauses. Thread-safe.
// `env` must outlive it.
//
// Errors: kPermission (the login is refused, or the object hidden), kNotFound, kInvalid (with
// Salesforce's error code and message), kUnavailable (not reached, or its limits are used up).
class SalesforceClient {
 public:
  // `origin`: "https://acme.my.salesforce.com".
  SalesforceClient(std::string origin, std::string version, SalesforceLogin login, Env& env);

  const std::string& origin() const { return origin_; }

  // `path` is below /services/data/vVERSION/.
  Result<HttpResponse> Get(const std::string& path, const std::stop_token& stop);
  Result<Json> GetJson(const std::string& path, const std::stop_token& stop);
  // Sent once: Salesforce has no way to tell a repetition.
  Result<Json> PostJson(const std::string& path, const Json& body, const std::stop_token& stop);

 private:
  Result<HttpResponse> Send(HttpRequest request, const std::stop_token& stop);
  Result<HttpResponse> SendOnce(HttpRequest request, const std::stop_token& stop);
  Result<std::string> Token(const std::stop_token& stop);
  Result<std::string> LoginForm() const;
  Result<std::string> Assertion() const;
  void Forget(const std::string& token);
  static Error ErrorOf(const HttpRequest& request, const HttpResponse& response);

  const std::string origin_;
  const std::string version_;
  const SalesforceLogin login_;
  Env& env_;
  HttpClient http_;
  std::mutex mutex_;
  std::string token_;     // empty: not logged in
  std::string instance_;  // where requests go, as the login said
};

}  // namespace muster
