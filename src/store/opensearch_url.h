#pragma once

#include "base/opensearch_endpoint.h"
#include "muster/result.h"

namespace muster {

// The cluster in a store URL; a path before the API becomes part of its base URL. kInvalid, with
// the correct form.
Result<OpenSearchEndpoint> OpenSearchEndpointOf(const Url& url);

}  // namespace muster
