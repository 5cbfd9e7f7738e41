#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <stop_token>
#include <string>

#include "muster/env.h"
#include "muster/result.h"
#include "net/opensearch.h"

namespace muster::pipeline {

struct ShardState {
  int64_t checkpoint = -1;  // every change up to this one is done
  int64_t last = -1;        // the last change overall
  bool is_numbered = false;
  int64_t documents = 0;  // nested ones included
  int64_t bytes = 0;
};

// The server's own count, independent of reading; excludes nested documents.
struct DocumentCount {
  int64_t documents = 0;
  size_t shards = 0;  // that responded
};

// What a cluster reports about the shards of an index. kUnavailable: not all of them are active.
class OpenSearchShards {
 public:
  OpenSearchShards(net::OpenSearchClient& client, Env& env) : client_(client), env_(env) {}

  // The uuid of the index, which a re-created one does not keep; empty: the user may not see it.
  // kNotFound: the index is gone.
  Result<std::string> Uuid(const std::string& collection, const std::stop_token& stop = {});

  // kCorrupt: the index does not have this uuid any more. Empty: not known, nothing to compare.
  Status CheckUuid(const std::string& collection, const std::string& uuid,
                   const std::stop_token& stop = {});

  // By number; all of them.
  Result<std::map<int, ShardState>> Of(const std::string& collection);

  // Of the index, or of one shard.
  Result<DocumentCount> Count(const std::string& collection, std::optional<int> shard = {});

  // Makes the latest writes searchable.
  Status Refresh(const std::string& collection);

  // Whether any documents lack a sequence number. A range search misses those silently.
  Result<bool> HasUnnumbered(const std::string& collection,
                             const std::map<int, ShardState>& shards);

  Error Unavailable(const std::string& collection, const std::string& what) const;

 private:
  net::OpenSearchClient& client_;
  Env& env_;
};

}  // namespace muster::pipeline
