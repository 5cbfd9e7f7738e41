#include "sql/postgres_uri.h"

#include <algorithm>

#include "core/secrets.h"

namespace muster::sql {

Result<std::string> PostgresUri(const Url& url, std::string_view what,
                                std::span<const std::string_view> own) {
  if (!url.password.empty() && !IsSecretReference(url.password)) {
    return Error{Code::kInvalid, std::string(what) + " contains a plain-text password",
                 "use ${env:NAME} or ${file:PATH} instead"};
  }
  MUSTER_ASSIGN(const std::string password, ExpandSecrets(url.password));
  std::string uri = "postgresql://" + PercentEncode(url.user);
  if (!password.empty()) uri += ":" + PercentEncode(password);
  if (!url.user.empty() || !password.empty()) uri += "@";
  const bool ipv6 = url.host.find(':') != std::string::npos;
  uri += ipv6 ? "[" + url.host + "]" : PercentEncode(url.host);
  if (url.port) uri += ":" + std::to_string(*url.port);
  if (url.path.size() > 1) uri += "/" + PercentEncode(url.path.substr(1));
  char separator = '?';
  for (const auto& [name, value] : url.query) {
    if (std::find(own.begin(), own.end(), name) != own.end()) continue;
    if (name == "password") {
      return Error{Code::kInvalid, std::string(what) + " contains a password as a parameter",
                   "write postgresql://USER:${env:NAME}@HOST/DATABASE"};
    }
    uri += separator + PercentEncode(name) + "=" + PercentEncode(value);
    separator = '&';
  }
  return uri;
}

}  // namespace muster::sql
