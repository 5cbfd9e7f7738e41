#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/json.h"
#include "muster/store.h"
#include "store/server_clock.h"

namespace muster::store {

// Records in the table, one item each:
//
//   pk        S  NAMESPACE/KIND
//   sk        S  the key: DynamoDB sorts strings by their UTF-8 bytes
//   queue     S
//   version   N
//   due       N  milliseconds since 1970; absent: never
//   due_in    S  NAMESPACE/KIND/QUEUE/SHARD, the index partition: chosen at creation
//   ready     N  from when on others may claim it; present when `due` is
//   owner     S
//   epoch     N
//   attempt   N
//   claim     S  the last claim; absent: none
//   nonce     S  new at every write other than a claim, so that a writer recognises its own
//   body      S
//
// The index `due` is keyed by due_in and ready, so it contains nothing that is never due. It
// includes attempt, claim and version.

inline constexpr const char* kDynamoDbDueIndex = "due";

// One index partition takes 1,000 writes a second, and a claim with its completion is three.
inline constexpr int kDynamoDbShards = 4;

// Names of the items of one namespace in one table.
class DynamoDbItems {
 public:
  DynamoDbItems(std::string table, std::string space)
      : table_(std::move(table)), space_(std::move(space)) {}

  Json Key(std::string_view kind, std::string_view key) const;
  std::string Partition(std::string_view kind) const;
  std::string DueIn(std::string_view kind, std::string_view queue, int shard) const;

  // { TableName, Key }
  Json Request(std::string_view kind, std::string_view key) const;

 private:
  const std::string table_;
  const std::string space_;
};

// Builds an UpdateItem or DeleteItem, alone or in a transaction. All attribute names are
// placeholders: half of the likely names are reserved words.
class DynamoDbUpdate {
 public:
  explicit DynamoDbUpdate(Json request) : request_(std::move(request)) {}

  DynamoDbUpdate& Set(const std::string& name, std::string_view text);
  DynamoDbUpdate& Set(const std::string& name, int64_t number);
  DynamoDbUpdate& Set(const std::string& name, WallTime time);
  DynamoDbUpdate& Add(const std::string& name, int64_t number);
  DynamoDbUpdate& Remove(const std::string& name);

  DynamoDbUpdate& IfMissing();
  DynamoDbUpdate& If(const std::string& name, const char* comparison, std::string_view text);
  DynamoDbUpdate& If(const std::string& name, const char* comparison, int64_t number);

  // The request, returning the conflicting item if a condition fails.
  Json Take() &&;

 private:
  void Assign(const std::string& name, Json value);
  void Compare(const std::string& name, const char* comparison, Json value);

  Json request_;
  Json names_ = Json::object();
  Json values_ = Json::object();
  std::string set_;
  std::string add_;
  std::string remove_;
  std::string condition_;
};

// { "S": text } and { "N": "number" }
Json DynamoDbText(std::string_view text);
Json DynamoDbNumber(int64_t number);
int64_t DynamoDbMilliseconds(WallTime time);

// The item in a response, for example the one that failed a condition; empty: none.
Json DynamoDbItemIn(const Json& body);

// The value of an attribute; none if missing or of another type.
std::optional<std::string> DynamoDbTextOf(const Json& item, const char* name);
std::optional<int64_t> DynamoDbNumberOf(const Json& item, const char* name);

// kCorrupt: not one of our items.
Result<Record> DynamoDbRecordOf(const Json& item, std::string_view kind);

}  // namespace muster::store
