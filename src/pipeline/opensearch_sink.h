#pragma once

#include <memory>

#include "base/url.h"
#include "muster/env.h"
#include "muster/pipeline.h"
#include "muster/result.h"

namespace muster {

// Writes to an OpenSearch or Elasticsearch cluster by _bulk: opensearch+https://HOST, each
// collection to the index of its name, or opensearch+https://HOST/INDEX, all to that one. Beside
// the endpoint's parameters:
//   gzip=true|false   compress what is sent (default: unless the host is this machine)
//
// Such a cluster has no fence across documents. A document keeps its id and routing, and one
// without an id is given the one that follows from where it stands in the source: written twice, or
// late by a worker that has lost its lease, it leaves what writing it once would have left.
//
// A document that the cluster refuses because it is busy is sent again, alone or with others like
// it; how many requests are under way at once, over all shards, follows from what the cluster
// takes.
Result<std::unique_ptr<Sink>> OpenOpenSearchSink(const Url& url, Env& env);

}  // namespace muster
