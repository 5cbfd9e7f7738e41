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
// Such a cluster has no fence across documents, but each document has a version, and we give it one
// by which a later holder wins: what a worker that has lost its lease writes is refused. A document
// keeps its id and routing, and one without an id is given the one that follows from where it
// stands in the source, so that written twice it leaves what writing it once would have left.
//
// A document that the cluster refuses because it is busy is sent again, alone or with others like
// it; how many requests are under way at once, over all shards, follows from what the cluster
// takes.
Result<std::unique_ptr<Sink>> OpenOpenSearchSink(const Url& url, Env& env);

}  // namespace muster
