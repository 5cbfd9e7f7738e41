#include "store/opensearch_url.h"

#include <algorithm>

#include "base/http.h"
#include "base/secrets.h"

namespace muster {
namespace {

Error Invalid(std::string message, std::string hint) {
  return Error{Code::kInvalid, std::move(message), std::move(hint)};
}

Result<std::string> Secret(const std::string& what, const std::string& text) {
  if (!IsSecretReference(text)) {
    return Invalid("store URL holds " + what + " in the clear",
                   "write ${env:NAME} or ${file:PATH} in its place");
  }
  return ExpandSecrets(text);
}

Status CheckParameters(const Url& url) {
  for (const auto& [name, value] : url.query) {
    if (name == "namespace" || name == "ca" || name == "api_key" || name == "aws_region") continue;
    return Invalid("store URL has an unknown parameter '" + name + "'",
                   "those for OpenSearch are namespace, ca, api_key and aws_region");
  }
  const int ways = (url.user.empty() ? 0 : 1) + (url.Param("api_key") ? 1 : 0) +
                   (url.Param("aws_region") ? 1 : 0);
  if (ways > 1) {
    return Invalid("store URL names more than one way to log in",
                   "give a user with a password, api_key or aws_region");
  }
  return {};
}

Result<std::string> AuthorizationOf(const Url& url) {
  if (const auto key = url.Param("api_key")) {
    MUSTER_ASSIGN(const std::string secret, Secret("an API key", *key));
    return "ApiKey " + secret;
  }
  if (url.user.empty()) return std::string();
  MUSTER_ASSIGN(const std::string password, Secret("a password", url.password));
  return BasicAuthorization(url.user, password);
}

}  // namespace

Result<OpenSearchAddress> OpenSearchAddressOf(const Url& url) {
  MUSTER_TRY(CheckParameters(url));
  if (url.host.empty()) {
    return Invalid("store URL names no host", "write " + url.scheme + "://HOST:PORT");
  }
  // It has neither a refresh nor reads by id that see the last write: claims could not be decided.
  if (url.host.ends_with(".aoss.amazonaws.com")) {
    return Invalid("OpenSearch Serverless cannot keep what a store promises",
                   "use a domain of Amazon OpenSearch Service, or DynamoDB");
  }
  OpenSearchAddress address;
  address.base = url.scheme.substr(url.scheme.find('+') + 1) + "://";
  const bool ipv6 = url.host.find(':') != std::string::npos;
  address.base += ipv6 ? "[" + url.host + "]" : url.host;
  if (url.port) address.base += ":" + std::to_string(*url.port);
  std::string prefix = url.path;
  while (prefix.ends_with('/')) prefix.pop_back();
  for (size_t start = 0; start < prefix.size();) {
    const size_t end = std::min(prefix.find('/', start + 1), prefix.size());
    address.base += "/" + PercentEncode(prefix.substr(start + 1, end - start - 1));
    start = end;
  }
  address.ca_file = url.Param("ca").value_or("");
  address.aws_region = url.Param("aws_region").value_or("");
  MUSTER_ASSIGN(address.authorization, AuthorizationOf(url));
  return address;
}

}  // namespace muster
