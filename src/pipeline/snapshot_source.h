#pragma once

#include <memory>

#include "base/url.h"
#include "muster/env.h"
#include "muster/pipeline.h"
#include "muster/result.h"

namespace muster {

// A snapshot of Elasticsearch or OpenSearch, read out of its repository without any cluster:
//   snapshot+file:///FOLDER#INDEX, or without #INDEX all of its indices
//   snapshot+s3://BUCKET/PREFIX#INDEX, with the parameters of S3Location
//   snapshot=NAME          which one (default: the newest that is complete)
//   since=NAME             only what has changed after this earlier one: first the documents that
//   are
//                          no longer there or no longer the same, as deleted; then the new ones
//   type=NAME              only documents of this type; needed where an index has several, which
//                          Elasticsearch up to 5 allowed: they may have the same ids
//   recovery_source=true   where the index keeps no _source, take the copy kept for recovery
//
// A partition is a shard, a position the number of a Lucene document: the same for everybody who
// reads this snapshot, and a shard is read from any of them on without unpacking what comes before.
// With `since` positions run over the earlier shard, then over the later one; such a partition is
// not split, since what is deleted must be deleted before what is new is written; and it is the
// whole index where documents may have moved between shards.
Result<std::unique_ptr<Source>> OpenSnapshotSource(const Url& url, Env& env);

}  // namespace muster
