#pragma once

#include <memory>
#include <string>
#include <vector>

#include "muster/store.h"
#include "store/dynamodb/dynamodb_place.h"
#include "store/opensearch/opensearch_url.h"

namespace muster::store {

// The backends of OpenStore, which has parsed and checked the arguments. `space` is the namespace:
// lower-case letters, digits and underscores, starting with a letter.

// Reads time from `env`: in the simulator that is the store's clock, separate from the workers'.
std::unique_ptr<Store> NewMemoryStore(Env& env);

// A copy of a NewMemoryStore's current state: a backup.
std::unique_ptr<Store> CopyMemoryStore(Store& store);

// The records a claim would take from a NewMemoryStore, as they are before it.
std::vector<Record> ClaimableIn(Store& store, const ClaimRequest& request);

Result<std::unique_ptr<Store>> OpenSqliteStore(const std::string& path, const std::string& space,
                                               Env& env);

// `uri` is a libpq connection URI, secrets expanded.
Result<std::unique_ptr<Store>> OpenPostgresStore(const std::string& uri, const std::string& space,
                                                 Env& env);

Result<std::unique_ptr<Store>> OpenDynamoDbStore(const DynamoDbPlace& place,
                                                 const std::string& space, Env& env);

Result<std::unique_ptr<Store>> OpenOpenSearchStore(const net::OpenSearchEndpoint& endpoint,
                                                   const std::string& space, Env& env);

}  // namespace muster::store
