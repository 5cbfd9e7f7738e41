#pragma once

#include <stop_token>
#include <string>

#include "core/json.h"
#include "core/mutex.h"
#include "core/url.h"
#include "muster/env.h"
#include "muster/result.h"
#include "net/http.h"

namespace muster::pipeline {

// Credentials: a client id and secret or, with a key, a user's JWT.
struct SalesforceLogin {
  std::string client_id;
  std::string client_secret;
  std::string user;
  std::string key;  // PEM
  std::string audience = "https://login.salesforce.com";
};

// REST client for one Salesforce org. Logs in when first needed, and again when the session
// expires. Transient failures are retried with backoff. Thread-safe. `env` must outlive it.
//
// Errors: kPermission (login refused, or object hidden), kNotFound, kInvalid (with Salesforce's
// error code and message), kUnavailable (unreachable, or limits exhausted).
class SalesforceClient {
 public:
  // `origin`: "https://acme.my.salesforce.com".
  SalesforceClient(std::string origin, std::string version, SalesforceLogin login, Env& env);

  const std::string& origin() const { return origin_; }

  // `path` is below /services/data/vVERSION/.
  Result<net::HttpResponse> Get(const std::string& path, const std::stop_token& stop);
  Result<Json> GetJson(const std::string& path, const std::stop_token& stop);
  // Not retried: Salesforce cannot detect duplicates.
  Result<Json> PostJson(const std::string& path, const Json& body, const std::stop_token& stop);

 private:
  Result<net::HttpResponse> Send(net::HttpRequest request, const std::stop_token& stop);
  Result<net::HttpResponse> SendOnce(net::HttpRequest request, const std::stop_token& stop);
  Result<std::string> Token(const std::stop_token& stop);
  Result<std::string> LoginForm() const;
  Result<std::string> Assertion() const;
  void Forget(const std::string& token);
  static Error ErrorOf(const net::HttpRequest& request, const net::HttpResponse& response);

  const std::string origin_;
  const std::string version_;
  const SalesforceLogin login_;
  Env& env_;
  net::HttpClient http_;
  Mutex mutex_;
  std::string token_ GUARDED_BY(mutex_);     // empty: not logged in
  std::string instance_ GUARDED_BY(mutex_);  // base URL for requests, from the login
};

}  // namespace muster::pipeline
