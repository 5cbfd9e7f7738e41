#pragma once

#include <optional>
#include <string>

#include "muster/env.h"
#include "muster/result.h"
#include "store/dynamodb_client.h"

namespace muster {

inline constexpr int kDynamoDbSchemaVersion = 1;

// What DynamoDB says of a table, as far as it matters here.
struct DynamoDbTable {
  std::string status;  // ACTIVE, CREATING, UPDATING, DELETING, ...
  bool is_on_demand = false;
  std::string mismatch;      // what about its keys is not as we need it; empty: all is
  std::string index_status;  // of the index of due times; empty: there is none

  // Updating is fine: it can be used meanwhile.
  bool IsReady() const {
    return (status == "ACTIVE" || status == "UPDATING") &&
           (index_status == "ACTIVE" || index_status == "UPDATING");
  }
};

// Nothing: there is no such table.
Result<std::optional<DynamoDbTable>> DescribeDynamoDbTable(DynamoDbClient& client);

// kIncompatible if its keys are others than ours.
Status CheckDynamoDbKeys(const DynamoDbClient& client, const DynamoDbTable& table);

// 0: the namespace is not there yet.
Result<int> DynamoDbSchemaVersion(DynamoDbClient& client, const std::string& space);

// kIncompatible if a newer muster wrote it.
Status CheckDynamoDbSchema(const DynamoDbClient& client, const std::string& space, int version);

// Makes sure that the table is there, creating it if its place says so (on-demand billing,
// point-in-time recovery on, where the server has that), that it is ready, which is waited for up
// to a minute, and that the namespace has our schema. Any number may do so at once.
Status PrepareDynamoDbTable(DynamoDbClient& client, const std::string& space, Env& env);

}  // namespace muster
