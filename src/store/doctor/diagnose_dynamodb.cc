#include "core/json.h"
#include "store/doctor/diagnose_backends.h"
#include "store/dynamodb/dynamodb_client.h"
#include "store/dynamodb/dynamodb_items.h"
#include "store/dynamodb/dynamodb_table.h"

namespace muster::store {
namespace {

void DiagnoseTransport(const DynamoDbPlace& place, Findings& findings) {
  const bool encrypted = place.endpoint.starts_with("https://");
  const bool local = place.endpoint.starts_with("http://127.") ||
                     place.endpoint.starts_with("http://localhost") ||
                     place.endpoint.starts_with("http://[::1]");
  if (encrypted) {
    findings.Ok("tls", "encrypted, and the server's certificate was verified");
  } else if (local) {
    findings.Ok("tls", "not encrypted, but does not leave this machine");
  } else {
    findings.Warn("tls", "the connection is not encrypted", "write endpoint=https://...");
  }
}

// Checks read permission for claims and scans; the doctor itself tries writing.
Status TryQueries(DynamoDbClient& client, const std::string& space) {
  const DynamoDbItems items(client.place().table, space);
  Json query{{"TableName", client.place().table},
             {"Limit", 1},
             {"KeyConditionExpression", "pk = :pk"},
             {"ExpressionAttributeValues", {{":pk", DynamoDbText(items.Partition("doctor"))}}}};
  for (const bool index : {false, true}) {
    if (index) {
      query["IndexName"] = kDynamoDbDueIndex;
      query["KeyConditionExpression"] = "due_in = :pk";
    }
    MUSTER_ASSIGN(const DynamoDbAnswer answer, client.Call("Query", query));
    if (!answer.ok()) return client.ErrorOf("Query", answer);
  }
  return {};
}

void DiagnoseBilling(const DynamoDbTable& table, Findings& findings) {
  if (table.is_on_demand) return findings.Ok("billing", "on demand");
  findings.Warn("billing", "capacity is provisioned: beyond it, requests are throttled",
                "give the index 'due' at least as many write units as the table, or switch to "
                "on-demand billing");
}

void DiagnoseRecovery(DynamoDbClient& client, Findings& findings) {
  constexpr const char* kHint =
      "aws dynamodb update-continuous-backups --table-name NAME "
      "--point-in-time-recovery-specification PointInTimeRecoveryEnabled=true";
  auto answer = client.Call("DescribeContinuousBackups", Json{{"TableName", client.place().table}});
  if (!answer) return findings.Warn("recovery", answer.error().message, "run the doctor again");
  if (answer->error == "UnknownOperationException") {
    return findings.Ok("recovery", "this server has no point-in-time recovery");
  }
  if (!answer->ok()) {
    return findings.Warn("recovery", "cannot tell whether point-in-time recovery is on",
                         "allow dynamodb:DescribeContinuousBackups to see");
  }
  const Json description = answer->body.value("ContinuousBackupsDescription", Json::object());
  const std::string status = description.value("PointInTimeRecoveryDescription", Json::object())
                                 .value("PointInTimeRecoveryStatus", "");
  if (status == "ENABLED") return findings.Ok("recovery", "point-in-time recovery is on");
  findings.Warn("recovery", "point-in-time recovery is off", kHint);
}

bool DiagnoseTable(DynamoDbClient& client, const DynamoDbTable& table, Findings& findings) {
  if (auto keys = CheckDynamoDbKeys(client, table); !keys) {
    findings.Fail("table", keys.error());
    return false;
  }
  if (!table.IsReady()) {
    findings.Fail("table", {Code::kUnavailable,
                            client.place().Name() + " is " + table.status + ", its index " +
                                table.index_status,
                            "wait until both are ACTIVE"});
    return false;
  }
  findings.Ok("table", client.place().Name() + " is " + table.status + ", with muster's keys");
  return true;
}

bool DiagnoseSchema(DynamoDbClient& client, const std::string& space, Findings& findings) {
  const std::string name = "namespace '" + space + "'";
  auto version = DynamoDbSchemaVersion(client, space);
  auto checked = version ? CheckDynamoDbSchema(client, space, *version) : version.error();
  if (!checked) {
    findings.Fail("schema", checked.error());
    return false;
  }
  if (*version == 0) {
    findings.Ok("schema", name + " does not exist yet: the first use creates it");
    return false;
  }
  findings.Ok("schema", name + " has version " + std::to_string(*version));
  return true;
}

}  // namespace

bool DiagnoseDynamoDb(const StoreUrl& url, Env& env, Findings& findings) {
  DynamoDbClient client(url.dynamodb, env);
  auto table = DescribeDynamoDbTable(client);
  if (!table) {
    findings.Fail(table.error().code == Code::kPermission ? "credentials" : "connect",
                  table.error());
    return false;
  }
  findings.Ok("connect", client.place().endpoint + " answers");
  DiagnoseTransport(client.place(), findings);
  if (!*table && client.place().create) {
    findings.Ok("table", client.place().Name() + " does not exist yet: the first use creates it");
    return false;
  }
  if (!*table) {
    findings.Fail("table", client.ErrorOf("DescribeTable", {.error = "ResourceNotFoundException"}));
    return false;
  }
  if (!DiagnoseTable(client, **table, findings)) return false;
  if (auto queries = TryQueries(client, url.space); !queries) {
    findings.Fail("permissions", queries.error());
    return false;
  }
  findings.Ok("permissions", "may read the table and its index");
  DiagnoseBilling(**table, findings);
  DiagnoseRecovery(client, findings);
  return DiagnoseSchema(client, url.space, findings);
}

}  // namespace muster::store
