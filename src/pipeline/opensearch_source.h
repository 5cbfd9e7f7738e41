#pragma once

#include <memory>

#include "base/url.h"
#include "muster/env.h"
#include "muster/pipeline.h"
#include "muster/result.h"

namespace muster {

// A live OpenSearch or Elasticsearch cluster: opensearch+https://HOST/INDEX-PATTERN; without a
// pattern, all indices but hidden ones. Beside the endpoint's parameters:
//   page_bytes=N   about how much is asked for at a time (default 4 MiB)
//
// A partition is a shard, a position a sequence number: every document of a shard has one of its
// own, which stays the same until the document is changed, through merges, restarts and moves. So a
// range of a shard can be read by anybody at any time, and nothing is held open at the server.
// What is indexed or changed while a range is read may or may not be in it.
Result<std::unique_ptr<Source>> OpenOpenSearchSource(const Url& url, Env& env);

}  // namespace muster
