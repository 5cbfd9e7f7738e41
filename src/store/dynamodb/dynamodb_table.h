#pragma once

#include <optional>
#include <string>

#include "muster/env.h"
#include "muster/result.h"
#include "store/dynamodb/dynamodb_client.h"

namespace muster::store {

inline constexpr int kDynamoDbSchemaVersion = 1;

// The relevant part of DynamoDB's table description.
struct DynamoDbTable {
  std::string status;  // ACTIVE, CREATING, UPDATING, DELETING, ...
  bool is_on_demand = false;
  std::string mismatch;      // how its keys differ from ours; empty: they match
  std::string index_status;  // of the index of due times; empty: none

  // Updating is fine: it stays usable.
  bool IsReady() const {
    return (status == "ACTIVE" || status == "UPDATING") &&
           (index_status == "ACTIVE" || index_status == "UPDATING");
  }
};

// None: no such table.
Result<std::optional<DynamoDbTable>> DescribeDynamoDbTable(DynamoDbClient& client);

// kIncompatible: its keys differ from ours.
Status CheckDynamoDbKeys(const DynamoDbClient& client, const DynamoDbTable& table);

// 0: the namespace does not exist yet. kCorrupt: its version cannot be read.
Result<int> DynamoDbSchemaVersion(DynamoDbClient& client, const std::string& space);

// kIncompatible: a newer muster wrote it.
Status CheckDynamoDbSchema(const DynamoDbClient& client, const std::string& space, int version);

// Ensures that the table exists, creating it if the URL says so (on-demand billing, point-in-time
// recovery if available), that it is ready, waiting up to a minute, and that the namespace has our
// schema. Safe for concurrent processes.
Status PrepareDynamoDbTable(DynamoDbClient& client, const std::string& space, Env& env);

}  // namespace muster::store
