#include "store/dynamodb/dynamodb_table.h"

#include "core/log.h"
#include "core/schema_version.h"
#include "store/dynamodb/dynamodb_items.h"

namespace muster::store {
namespace {

using std::chrono::milliseconds;

constexpr std::chrono::seconds kReadyWithin{60};
constexpr milliseconds kLookEvery{500};
constexpr int kTriesForRecovery = 10;

const std::string kSchemaKey = "schema";

Json KeySchema(const char* hash, const char* range) {
  return Json::array({{{"AttributeName", hash}, {"KeyType", "HASH"}},
                      {{"AttributeName", range}, {"KeyType", "RANGE"}}});
}

Json Attribute(const char* name, const char* type) {
  return Json{{"AttributeName", name}, {"AttributeType", type}};
}

Json CreateRequest(const std::string& table) {
  return Json{
      {"TableName", table},
      {"BillingMode", "PAY_PER_REQUEST"},
      {"AttributeDefinitions", Json::array({Attribute("pk", "S"), Attribute("sk", "S"),
                                            Attribute("due_in", "S"), Attribute("ready", "N")})},
      {"KeySchema", KeySchema("pk", "sk")},
      {"GlobalSecondaryIndexes",
       Json::array({{{"IndexName", kDynamoDbDueIndex},
                     {"KeySchema", KeySchema("due_in", "ready")},
                     {"Projection",
                      {{"ProjectionType", "INCLUDE"},
                       {"NonKeyAttributes", Json::array({"attempt", "claim", "version"})}}}}})}};
}

// "pk S HASH, sk S RANGE": for comparing and display.
std::string KeysOf(const Json& description, const Json& described) {
  std::string keys;
  for (const Json& key : description.value("KeySchema", Json::array())) {
    const std::string name = key.value("AttributeName", "");
    std::string type;
    for (const Json& attribute : described.value("AttributeDefinitions", Json::array())) {
      if (attribute.value("AttributeName", "") == name) type = attribute.value("AttributeType", "");
    }
    keys += (keys.empty() ? "" : ", ") + name + " " + type + " " + key.value("KeyType", "");
  }
  return keys;
}

std::string MismatchOf(const std::string& what, const std::string& keys, const char* wanted) {
  if (keys == wanted) return "";
  return what + " has the keys " + keys + ", not " + wanted;
}

bool Projects(const Json& index, const std::string& name) {
  const Json projection = index.value("Projection", Json::object());
  if (projection.value("ProjectionType", "") == "ALL") return true;
  for (const Json& projected : projection.value("NonKeyAttributes", Json::array())) {
    if (projected == name) return true;
  }
  return false;
}

DynamoDbTable TableFrom(const Json& described) {
  DynamoDbTable table;
  table.status = described.value("TableStatus", "");
  table.is_on_demand =
      described.value("BillingModeSummary", Json::object()).value("BillingMode", "") ==
      "PAY_PER_REQUEST";
  table.mismatch = MismatchOf("it", KeysOf(described, described), "pk S HASH, sk S RANGE");
  for (const Json& index : described.value("GlobalSecondaryIndexes", Json::array())) {
    if (index.value("IndexName", "") != kDynamoDbDueIndex) continue;
    table.index_status = index.value("IndexStatus", "");
    if (table.mismatch.empty()) {
      table.mismatch =
          MismatchOf("its index 'due'", KeysOf(index, described), "due_in S HASH, ready N RANGE");
    }
    if (table.mismatch.empty() &&
        !(Projects(index, "attempt") && Projects(index, "claim") && Projects(index, "version"))) {
      table.mismatch = "its index 'due' does not include the attributes attempt, claim and version";
    }
  }
  if (table.mismatch.empty() && table.index_status.empty()) {
    table.mismatch = "it has no global secondary index 'due'";
  }
  return table;
}

// A failure here must not prevent using the table; the doctor reports it.
void SwitchRecoveryOn(DynamoDbClient& client, Env& env) {
  const Json request{{"TableName", client.place().table},
                     {"PointInTimeRecoverySpecification", {{"PointInTimeRecoveryEnabled", true}}}};
  std::string reason;
  for (int tries = 0; tries < kTriesForRecovery; ++tries) {
    auto answer = client.Call("UpdateContinuousBackups", request);
    // DynamoDB Local has no backups.
    if (answer && (answer->ok() || answer->error == "UnknownOperationException")) return;
    reason = answer ? answer->error + ": " + answer->message : answer.error().ToString();
    // A new table does not accept this immediately.
    if (!answer || answer->error != "ContinuousBackupsUnavailableException") break;
    static_cast<void>(env.Sleep(kLookEvery, {}));
  }
  Log(Level::kWarning, "point-in-time recovery of a new table could not be switched on",
      {{"table", client.place().table}, {"reason", reason}});
}

// Whether this call created it.
Result<bool> Create(DynamoDbClient& client) {
  MUSTER_ASSIGN(const DynamoDbAnswer answer,
                client.Call("CreateTable", CreateRequest(client.place().table)));
  if (answer.ok()) return true;
  // Created concurrently, or by an earlier try of ours.
  if (answer.error == "ResourceInUseException") return answer.in_doubt;
  return client.ErrorOf("CreateTable", answer);
}

Error NoTable(const DynamoDbClient& client) {
  return client.ErrorOf("DescribeTable", {.error = "ResourceNotFoundException"});
}

// Waits until the table can be used.
Status AwaitTable(DynamoDbClient& client, Env& env) {
  const MonoTime end = env.MonoNow() + kReadyWithin;
  bool created = false;
  while (true) {
    MUSTER_ASSIGN(const std::optional<DynamoDbTable> table, DescribeDynamoDbTable(client));
    if (!table && !client.place().create) return NoTable(client);
    if (!table) {
      MUSTER_ASSIGN(const bool by_us, Create(client));
      created = created || by_us;
    } else if (table->status == "DELETING") {
      return Error{Code::kUnavailable, client.place().Name() + " is being deleted",
                   "wait until it is deleted, or name another"};
    } else {
      MUSTER_TRY(CheckDynamoDbKeys(client, *table));
      if (table->IsReady()) break;
    }
    if (env.MonoNow() > end) {
      return Error{Code::kUnavailable, client.place().Name() + " is not ready yet",
                   "wait until the table and its index are ACTIVE, then run the command again"};
    }
    static_cast<void>(env.Sleep(kLookEvery / 2 + env.Jitter(kLookEvery / 2), {}));
  }
  if (created) SwitchRecoveryOn(client, env);
  return {};
}

// The item with a namespace's schema version; it has no kind, so no record collides with it.
Json SchemaItem(const DynamoDbClient& client, const std::string& space) {
  return Json{{"TableName", client.place().table},
              {"Key", {{"pk", DynamoDbText(space)}, {"sk", DynamoDbText(kSchemaKey)}}}};
}

}  // namespace

Result<std::optional<DynamoDbTable>> DescribeDynamoDbTable(DynamoDbClient& client) {
  MUSTER_ASSIGN(const DynamoDbAnswer answer,
                client.Call("DescribeTable", Json{{"TableName", client.place().table}}));
  if (answer.error == "ResourceNotFoundException") return std::optional<DynamoDbTable>{};
  if (!answer.ok()) return client.ErrorOf("DescribeTable", answer);
  return std::optional<DynamoDbTable>(TableFrom(answer.body.value("Table", Json::object())));
}

Status CheckDynamoDbKeys(const DynamoDbClient& client, const DynamoDbTable& table) {
  if (table.mismatch.empty()) return {};
  return Error{Code::kIncompatible,
               client.place().Name() + " is not a muster table: " + table.mismatch,
               "name another table, or a new one with ?create=true"};
}

Result<int> DynamoDbSchemaVersion(DynamoDbClient& client, const std::string& space) {
  MUSTER_ASSIGN(const Json item, client.GetItem(SchemaItem(client, space)));
  if (item.empty()) return 0;
  const std::optional<int64_t> version = DynamoDbNumberOf(item, "version");
  if (!version || *version <= 0) {
    return Error{
        Code::kCorrupt,
        client.place().Name() + ": the schema version of namespace '" + space + "' cannot be read",
        "restore the item with the sort key 'schema' from a backup"};
  }
  return static_cast<int>(*version);
}

Status CheckDynamoDbSchema(const DynamoDbClient& client, const std::string& space, int version) {
  if (version <= kDynamoDbSchemaVersion) return {};
  return NewerSchema(client.place().Name(), "namespace '" + space + "'", version,
                     kDynamoDbSchemaVersion);
}

Status PrepareDynamoDbTable(DynamoDbClient& client, const std::string& space, Env& env) {
  MUSTER_TRY(AwaitTable(client, env));
  MUSTER_ASSIGN(const int version, DynamoDbSchemaVersion(client, space));
  if (version != 0) return CheckDynamoDbSchema(client, space, version);
  DynamoDbUpdate update(SchemaItem(client, space));
  update.Set("version", int64_t{kDynamoDbSchemaVersion}).IfMissing();
  MUSTER_ASSIGN(const DynamoDbAnswer answer, client.Call("UpdateItem", std::move(update).Take()));
  if (answer.ok()) return {};
  if (!answer.ConditionFailed()) return client.ErrorOf("UpdateItem", answer);
  // Created concurrently.
  MUSTER_ASSIGN(const int theirs, DynamoDbSchemaVersion(client, space));
  return CheckDynamoDbSchema(client, space, theirs);
}

}  // namespace muster::store
