#pragma once

#include <optional>
#include <string>

#include "core/json.h"
#include "core/mutex.h"
#include "muster/env.h"
#include "muster/result.h"
#include "net/opensearch.h"

namespace muster::pipeline {

// What documents sent to a name of a cluster are written to: the index or data stream itself or, of
// an alias, the index that takes writes.
struct OpenSearchTarget {
  std::string index = {};  // empty: refused, or the cluster does not say
  std::string uuid = {};   // of that index; of a data stream, its name with a mark
  bool is_stream = false;
  std::optional<Error> refusal = {};  // why nothing can be written to it

  // By the response to this request.
  static net::OpenSearchCall Request(const std::string& name);
  static OpenSearchTarget In(const Json& response, const std::string& name);

  // None: the cluster has no index, alias or data stream of that name.
  static Result<std::optional<OpenSearchTarget>> Find(net::OpenSearchClient& client,
                                                      const std::string& name);
};

// Identifies indices by the uuids of cluster and index, however the cluster is addressed.
// Thread-safe; the arguments must outlive it.
class OpenSearchTables {
 public:
  OpenSearchTables(net::OpenSearchClient& client, Env& env) : client_(client), env_(env) {}

  // As Source::TableId, of an index with this uuid.
  Result<std::string> IdOf(const std::string& uuid);

 private:
  net::OpenSearchClient& client_;
  Env& env_;
  Mutex mutex_;
  std::optional<std::string> cluster_ GUARDED_BY(mutex_);
};

// Whether an index, by its part of the response to GET /NAME, is a store of ours.
bool IsOurStore(const Json& index);

}  // namespace muster::pipeline
