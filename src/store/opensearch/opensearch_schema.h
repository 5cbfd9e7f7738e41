#pragma once

#include <optional>
#include <string>

#include "muster/env.h"
#include "muster/result.h"
#include "store/opensearch/opensearch_cluster.h"

namespace muster::store {

// A store's index and its names. For the namespace `muster`:
//   muster_records-000001  the index
//   muster_records         its alias, for finding it
//   muster_records-ID      another alias, with a random id, so that an index that was deleted and
//                          recreated is never mistaken for the original
inline constexpr int kOpenSearchSchemaVersion = 1;

struct OpenSearchServerInfo {
  std::string distribution;  // "OpenSearch" or "Elasticsearch"
  std::string version;       // "2.19.6"
};

struct OpenSearchIndex {
  std::string name = {};
  std::string alias = {};  // with the random id
  int schema_version = 0;
  bool reads_primaries = false;  // replicas lag (segment replication)
  bool blocked = false;          // currently rejects writes
  std::string shards = {};
  std::string replicas = {};
  std::string refresh_interval = {};
  std::string durability = {};
};

// kIncompatible: older than Elasticsearch 7.10 or OpenSearch 1, or neither.
Result<OpenSearchServerInfo> ReadOpenSearchServer(OpenSearchCluster& client);

// The index of a namespace, if any. kIncompatible: its schema is newer, or it is not ours.
Result<std::optional<OpenSearchIndex>> FindOpenSearchIndex(OpenSearchCluster& client,
                                                           const std::string& space);

// The same, created if missing. Safe for concurrent processes.
Result<OpenSearchIndex> OpenOpenSearchIndex(OpenSearchCluster& client, const std::string& space,
                                            Env& env);

}  // namespace muster::store
