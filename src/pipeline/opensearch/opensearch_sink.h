#pragma once

#include <memory>

#include "core/url.h"
#include "muster/env.h"
#include "muster/pipeline.h"
#include "muster/result.h"

namespace muster::pipeline {

// Writes to an OpenSearch or Elasticsearch cluster with _bulk: opensearch+https://HOST, each
// collection to the index of its name, or opensearch+https://HOST/INDEX, all to that one. Besides
// the endpoint's parameters:
//   gzip=true|false   compress requests (default: unless the host is this machine)
//
// A cluster has no fence across documents, but each document has a version, chosen so that a later
// holder wins: writes of a worker that has lost its lease are refused. A document keeps its id and
// routing; one without an id gets an id derived from its position in the source, so that writing is
// idempotent.
//
// Documents rejected because the cluster is busy are retried. The number of concurrent requests,
// across all shards, adapts to what the cluster accepts.
Result<std::unique_ptr<Sink>> OpenOpenSearchSink(const Url& url, Env& env);

}  // namespace muster::pipeline
