#pragma once

#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>

#include "muster/env.h"
#include "muster/pipeline.h"
#include "net/opensearch.h"

namespace muster::pipeline {

// Readers of one shard of an index. `client` and `env` must outlive them.
struct ShardPlace {
  std::string index;
  std::string uuid;  // empty: unknown
  int shard = 0;
  bool is_frozen = false;
};

// The documents whose sequence number is in [begin, end), in pages of about `page_bytes`.
struct SeqNoRange {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t page_bytes = 0;
};
std::unique_ptr<Reader> NewRangeReader(net::OpenSearchClient& client, Env& env,
                                       const ShardPlace& place, const SeqNoRange& range,
                                       std::stop_token stop);

// Everything from sequence number `begin` on, from one point in time: a document under continuous
// update keeps getting higher numbers, and a reader chasing them would never end.
std::unique_ptr<Reader> NewFollowingReader(net::OpenSearchClient& client, Env& env,
                                           const ShardPlace& place, int64_t begin,
                                           std::stop_token stop);

// An index whose documents have no sequence numbers (before Elasticsearch 6), ordered by `field`,
// from a position on.
std::unique_ptr<Reader> NewIdReader(net::OpenSearchClient& client, Env& env,
                                    const ShardPlace& place, std::string field,
                                    std::string position, std::stop_token stop);

}  // namespace muster::pipeline
