#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "side.h"
#include "support/dynamodb_server.h"
#include "table.h"

namespace muster::bench {

// The key of the n-th record.
std::string BenchKey(int64_t n);

// The items of one namespace in a table of DynamoDB Local.
std::unique_ptr<Table> DynamoDbTable(const testing::DynamoDbServer& server,
                                     const std::string& table, const std::string& space);

// What DynamoDB itself can do: bare signed requests for items whose keys are known beforehand, one
// thread for each worker. A claim is an UpdateItem for each record; a completion is one as well, or
// one transaction for a batch.
std::unique_ptr<Side> RawDynamoDb(const testing::DynamoDbServer& server, const std::string& table,
                                  const std::string& space);

}  // namespace muster::bench
