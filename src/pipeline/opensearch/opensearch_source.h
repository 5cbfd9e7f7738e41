#pragma once

#include <memory>

#include "core/url.h"
#include "muster/env.h"
#include "muster/pipeline.h"
#include "muster/result.h"

namespace muster::pipeline {

// A live OpenSearch or Elasticsearch cluster: opensearch+https://HOST/INDEX-PATTERN; without a
// pattern, all indices except hidden ones. Besides the endpoint's parameters:
//   page_bytes=N   approximate response size (default 4 MiB)
//
// A partition is a shard, a position a sequence number. Each document of a shard has its own, which
// survives merges, restarts and relocation and changes only when the document does. So any worker
// can read a range of a shard at any time, and nothing is held open on the server. A document that
// changes during the read gets a number after the range: a second partition of the shard reads what
// was added after the first, from one point in time. Documents from before Elasticsearch 6 have no
// numbers: an index that contains such documents is read in id order. Documents deleted while
// reading may or may not be returned.
Result<std::unique_ptr<Source>> OpenOpenSearchSource(const Url& url, Env& env);

}  // namespace muster::pipeline
