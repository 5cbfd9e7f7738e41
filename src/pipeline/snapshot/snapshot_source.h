#pragma once

#include <memory>

#include "core/url.h"
#include "muster/env.h"
#include "muster/pipeline.h"
#include "muster/result.h"

namespace muster::pipeline {

// A snapshot of Elasticsearch or OpenSearch, read from its repository without a cluster:
//   snapshot+file:///FOLDER#INDEX, or without #INDEX all of its indices
//   snapshot+s3://BUCKET/PREFIX#INDEX, with the parameters of S3Location
//   snapshot=NAME          which snapshot (default: the newest complete one)
//   since=NAME             only changes since this earlier one: first documents that are gone or
//                          changed, as deletes; then the new ones
//   type=NAME              only documents of this type; required for an index with several, which
//                          Elasticsearch up to 5 allowed: their ids may overlap
//   recovery_source=true   for an index without _source, or without some fields of it, use the
//                          copies kept for recovery
//   pruned_source=true     without some fields of it, take what there is
//   rebuild_source=true    rebuild what _source lacks from doc values and stored fields
//
// A partition is a shard, a position the number of a Lucene document: the same for every reader of
// this snapshot. Reading can start at any position without decompressing what comes before. With
// `since`, positions run over the earlier shard, then over the later one; such a partition is not
// split, since deletes must precede writes, and it spans the whole index if documents may have
// moved between shards.
Result<std::unique_ptr<Source>> OpenSnapshotSource(const Url& url, Env& env);

}  // namespace muster::pipeline
