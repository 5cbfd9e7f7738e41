#pragma once

#include <optional>
#include <string>

#include "muster/env.h"
#include "muster/result.h"
#include "store/opensearch_cluster.h"

namespace muster {

// What a store's index is called and made of. For the namespace `muster`:
//   muster_records-000001  the index
//   muster_records         an alias of it, by which it is found
//   muster_records-ID      another, with a random id: whoever goes by it never mistakes an index
//                          that was deleted and created again for the one it knew
inline constexpr int kOpenSearchSchemaVersion = 1;

struct OpenSearchServerInfo {
  std::string distribution;  // "OpenSearch" or "Elasticsearch"
  std::string version;       // "2.19.6"
};

struct OpenSearchIndex {
  std::string name = {};
  std::string alias = {};  // with the random id
  int schema_version = 0;
  bool reads_primaries = false;  // copies of it lag behind (segment replication)
  bool blocked = false;          // takes no writes at the moment
  std::string shards = {};
  std::string replicas = {};
  std::string refresh_interval = {};
  std::string durability = {};
};

// kIncompatible: older than Elasticsearch 7.10 or OpenSearch 1, or neither.
Result<OpenSearchServerInfo> ReadOpenSearchServer(OpenSearchCluster& client);

// The index of a namespace, if there is one. kIncompatible: its schema is newer, or it is not ours.
Result<std::optional<OpenSearchIndex>> FindOpenSearchIndex(OpenSearchCluster& client,
                                                           const std::string& space);

// The same, created if there is none. Several may do so at once.
Result<OpenSearchIndex> OpenOpenSearchIndex(OpenSearchCluster& client, const std::string& space,
                                            Env& env);

}  // namespace muster
