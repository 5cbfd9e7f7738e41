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
// range of a shard can be read by anybody at any time, and nothing is held open at the server. A
// document that is changed meanwhile gets a number behind the range: a second partition of the
// shard follows, and reads what has come behind the first, as of one moment. Documents that are
// older than Elasticsearch 6 have no numbers: an index with such is read in the order of its ids.
// What is deleted while it is read may or may not be there.
Result<std::unique_ptr<Source>> OpenOpenSearchSource(const Url& url, Env& env);

}  // namespace muster
