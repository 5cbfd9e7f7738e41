#pragma once

#include <string>

#include "muster/result.h"
#include "store/dynamodb/dynamodb_place.h"
#include "store/opensearch/opensearch_url.h"

namespace muster::store {

// A parsed store URL: backend, namespace, and the backend's target.
struct StoreUrl {
  enum class Backend { kMemory, kSqlite, kPostgres, kOpenSearch, kDynamoDb };
  Backend backend = Backend::kMemory;
  std::string space;   // lower-case letters, digits and underscores, a letter first
  std::string target;  // sqlite: the file's path; postgres: a libpq URI, secrets expanded
  net::OpenSearchEndpoint opensearch = {};
  DynamoDbPlace dynamodb = {};
};

// kInvalid, with the correct form. Never repeats a password.
Result<StoreUrl> ParseStoreUrl(const std::string& text);

}  // namespace muster::store
