#pragma once

#include "muster/result.h"
#include "net/opensearch_endpoint.h"

namespace muster::store {

// The cluster in a store URL; a path before the API becomes part of its base URL. kInvalid, with
// the correct form.
Result<net::OpenSearchEndpoint> OpenSearchEndpointOf(const Url& url);

}  // namespace muster::store
