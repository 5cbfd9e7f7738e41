#pragma once

#include <string>

#include "base/url.h"
#include "muster/result.h"

namespace muster {

// Where a cluster of OpenSearch or Elasticsearch is, and as whom to speak to it.
struct OpenSearchAddress {
  std::string base;                // http or https://HOST:PORT/PREFIX, no slash at the end
  std::string ca_file = {};        // empty: the system's authorities
  std::string authorization = {};  // the header's value, known to Redact; empty: none
  std::string aws_region = {};     // not empty: requests are signed for the service es
};

// The address in a store's URL, secrets expanded:
//   opensearch+https://USER:${env:NAME}@HOST:PORT/PREFIX
// Parameters: `ca`, a file of authorities to trust; `api_key`, a reference to one; `aws_region`, to
// sign requests for Amazon OpenSearch Service. kInvalid, with what to write instead.
Result<OpenSearchAddress> OpenSearchAddressOf(const Url& url);

}  // namespace muster
