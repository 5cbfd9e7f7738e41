#pragma once

#include <map>
#include <stop_token>
#include <string>
#include <vector>

#include "core/json.h"
#include "muster/env.h"
#include "muster/result.h"
#include "net/opensearch.h"

namespace muster::pipeline {

struct DataStream {
  std::vector<std::string> indices;  // the oldest first; the last is written to
  bool is_hidden = false;
};
using DataStreams = std::map<std::string, DataStream>;

// By the list of them in a cluster's response, or in a snapshot.
DataStreams DataStreamsIn(const Json& list);

// The data streams of a cluster, or the one of this name. None: the cluster knows no data streams,
// none of that name, or the user may not see them.
Result<DataStreams> AskForDataStreams(net::OpenSearchClient& client, Env& env,
                                      const std::string& name = {},
                                      const std::stop_token& stop = {});

// A data stream is one collection, whose shards are those of its backing indices: the number of the
// first shard of each index, far enough apart. By the generation in an index's name, so that it
// stays the same when older indices are deleted: .ds-logs-000003 has the shards 30000, 30001, ….
std::vector<int> FirstShardsOf(const std::vector<std::string>& indices);

// The number of a shard in its own index.
inline constexpr int kShardsPerIndex = 10'000;

}  // namespace muster::pipeline
