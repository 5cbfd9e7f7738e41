#include "store/opensearch/opensearch_url.h"

#include <algorithm>

namespace muster::store {

Result<net::OpenSearchEndpoint> OpenSearchEndpointOf(const Url& url) {
  auto endpoint = net::OpenSearchEndpoint::FromUrl(url, {"namespace"});
  if (!endpoint) return endpoint.error().Within("store URL");
  // It has neither a refresh nor reads by id that see the last write, so claims could not be
  // decided.
  if (endpoint->aws_service == "aoss" || url.host.ends_with(".aoss.amazonaws.com")) {
    return Error{Code::kInvalid, "OpenSearch Serverless cannot provide a store's guarantees",
                 "use a domain of Amazon OpenSearch Service, or DynamoDB"};
  }
  std::string prefix = url.path;
  while (prefix.ends_with('/')) prefix.pop_back();
  for (size_t start = 0; start < prefix.size();) {
    const size_t end = std::min(prefix.find('/', start + 1), prefix.size());
    endpoint->base_url += "/" + PercentEncode(prefix.substr(start + 1, end - start - 1));
    start = end;
  }
  return endpoint;
}

}  // namespace muster::store
