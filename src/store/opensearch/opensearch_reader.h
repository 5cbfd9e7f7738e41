#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/json.h"
#include "muster/result.h"
#include "muster/store.h"
#include "store/opensearch/opensearch_cluster.h"
#include "store/opensearch/opensearch_schema.h"

namespace muster::store {

// Reads a store's index. Thread-safe. `client` must outlive it.
class OpenSearchReader {
 public:
  OpenSearchReader(OpenSearchCluster& client, const OpenSearchIndex& index);

  // Documents by id, in their current state, whatever searches show. Each is the response to a
  // get: see IsFound.
  Result<Json> Read(const std::vector<std::string>& ids);

  // Makes all earlier writes visible to searches.
  Status Refresh();

  // The hits of a search, each with its version.
  Result<Json> Search(Json query);

  // Store::Scan.
  Result<std::vector<Record>> Scan(std::string_view kind, std::string_view prefix,
                                   std::string_view after, int limit);

 private:
  OpenSearchCluster& client_;
  const std::string alias_;
  const std::string search_;
};

inline constexpr int kOpenSearchPage = 100;  // documents that fit in one response, even if large

// Whether a document that was read by id exists.
bool IsFound(const Json& document);

// Parts of a query.
Json Term(const char* field, std::string_view value);
Json Where(Json conditions);

}  // namespace muster::store
