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

// An index as its settings describe it.
struct IndexState {
  std::string uuid;        // a re-created index has another; empty: the user may not see it
  bool is_frozen = false;  // searches and counts skip it unless they say otherwise
  bool is_index = true;    // false: a name that stands for other indices
};

// The parameter that makes searches and counts include a frozen index; other versions refuse it.
std::string FrozenParameter(const IndexState& state, char before);

// What a cluster reports about the shards of an index. kUnavailable: not all of them are active.
class OpenSearchShards {
 public:
  OpenSearchShards(net::OpenSearchClient& client, Env& env) : client_(client), env_(env) {}

  // kNotFound: the index is gone.
  Result<IndexState> Describe(const std::string& index, const std::stop_token& stop = {});

  // The same. kCorrupt: the index does not have this uuid any more. Empty: not known, nothing to
  // compare.
  Result<IndexState> CheckUuid(const std::string& index, const std::string& uuid,
                               const std::stop_token& stop = {});

  // By number; all of them.
  Result<std::map<int, ShardState>> Of(const std::string& collection);

  // Of the index, or of one shard.
  Result<DocumentCount> Count(const std::string& collection, const IndexState& state,
                              std::optional<int> shard = {});

  // Makes the latest writes searchable; if the user may not do that, waits until the index has
  // done so itself. kPermission: it never does.
  Status Refresh(const std::string& index, const std::stop_token& stop = {});

  // Whether any documents lack a sequence number. A range search misses those silently.
  Result<bool> HasUnnumbered(const std::string& collection, const IndexState& state,
                             const std::map<int, ShardState>& shards);

  Error Unavailable(const std::string& collection, const std::string& what) const;

 private:
  Status AwaitRefresh(const std::string& index, const Error& refused, const std::stop_token& stop);

  net::OpenSearchClient& client_;
  Env& env_;
};

}  // namespace muster::pipeline
