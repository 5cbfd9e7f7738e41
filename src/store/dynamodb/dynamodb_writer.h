#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/json.h"
#include "muster/store.h"
#include "store/dynamodb/dynamodb_client.h"
#include "store/dynamodb/dynamodb_items.h"
#include "store/server_clock.h"

namespace muster::store {

// Store::Write on a table: one change is a conditional UpdateItem or DeleteItem, several are
// transactions. Thread-safe. The arguments of the constructor must outlive it.
class DynamoDbWriter {
 public:
  DynamoDbWriter(DynamoDbClient& client, const DynamoDbItems& items, Env& env)
      : client_(client), items_(items), env_(env) {}

  Result<std::vector<Written>> Write(std::span<const Change> changes);

 private:
  // A change as an UpdateItem or DeleteItem request, or as part of a transaction.
  struct Request {
    Json json;
    std::string nonce;
    int64_t version = 0;  // of the record afterwards
  };

  // `reading` may be none unless a change is due after a delay.
  Request RequestOf(const Change& change, const std::optional<ServerClock::Reading>& reading);
  Result<std::optional<ServerClock::Reading>> ReadingFor(std::span<const Change> changes);
  Result<std::vector<Written>> WriteOne(const Change& change);
  Result<std::vector<Written>> WriteMany(std::span<const Change> changes);
  Status WriteGroup(std::span<const Change> changes, std::vector<size_t> group,
                    std::vector<Written>& answers);
  Result<std::vector<size_t>> WithoutFailed(std::vector<size_t> group,
                                            const DynamoDbAnswer& answer);

  DynamoDbClient& client_;
  const DynamoDbItems& items_;
  Env& env_;
};

}  // namespace muster::store
