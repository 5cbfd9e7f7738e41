// `muster doctor` on healthy stores, and that checking one changes nothing.

#include <gtest/gtest.h>

#include <fstream>
#include <map>

#include "cli/program.h"
#include "core/json.h"
#include "muster/store.h"
#include "sql/sqlite.h"
#include "support/dynamodb_gate.h"
#include "support/dynamodb_server.h"
#include "support/postgres_server.h"
#include "support/shared_server.h"

namespace muster::testing {
namespace {

// Check → "status: message", from doctor --json; a failure of the run is a failure of the test.
std::map<std::string, std::string> Findings(const std::string& store) {
  Outcome outcome = RunMuster({"doctor", "--json", "--store", store});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err << outcome.out;
  EXPECT_EQ(outcome.err, "");
  std::map<std::string, std::string> findings;
  auto json = Json::parse(outcome.out, nullptr, false);
  EXPECT_EQ(json["store"], store);
  for (const auto& finding : json["findings"]) {
    findings[finding["check"]] =
        finding["status"].get<std::string>() + ": " + finding["message"].get<std::string>();
  }
  return findings;
}

bool IsOk(const std::map<std::string, std::string>& findings, const std::string& check) {
  auto finding = findings.find(check);
  return finding != findings.end() && finding->second.starts_with("ok: ");
}

TEST(Doctor, MissingSqliteStoreIsNotCreated) {
  TempFolder folder;
  auto findings = Findings("sqlite:" + (folder / "a.db"));
  EXPECT_TRUE(findings["file"].find("first use creates it") != std::string::npos);
  EXPECT_TRUE(folder.Snapshot().empty());
}

TEST(Doctor, GoodSqliteStorePassesEveryCheckAndIsUnchanged) {
  TempFolder folder;
  const std::string url = "sqlite:" + (folder / "a.db");
  auto store = store::OpenStore(url, RealEnv());
  ASSERT_TRUE(store) << store.error().ToString();
  auto findings = Findings(url);
  for (const char* check : {"muster", "version", "folder", "filesystem", "file", "integrity",
                            "schema", "clock", "latency", "write"}) {
    EXPECT_TRUE(IsOk(findings, check)) << check << " " << findings[check];
  }
  EXPECT_TRUE((*store)->Scan("doctor", "", "", 10).value().empty());
}

TEST(Doctor, ForeignDatabaseIsUnchanged) {
  TempFolder folder;
  // sqlite3's own default: no write-ahead log.
  ASSERT_EQ(RunCommand({"sqlite3", folder / "a.db", "CREATE TABLE t (x)"}).exit_code, 0);
  auto before = folder.Snapshot();
  auto findings = Findings("sqlite:" + (folder / "a.db"));
  EXPECT_TRUE(findings["schema"].find("does not exist yet") != std::string::npos);
  EXPECT_EQ(folder.Snapshot(), before);
}

TEST(Doctor, GoodPostgresStorePassesEveryCheckAndIsUnchanged) {
  const PostgresServer& server = PostgresServer::Shared();
  server.Clear();
  auto before = Findings(server.Url());
  EXPECT_TRUE(before["schema"].find("does not exist yet") != std::string::npos) << before["schema"];
  EXPECT_EQ(server.Exec("SELECT count(*) FROM pg_namespace WHERE nspname = 'muster'"), "0");
  auto store = store::OpenStore(server.Url(), RealEnv());
  ASSERT_TRUE(store) << store.error().ToString();
  auto findings = Findings(server.Url());
  for (const char* check :
       {"muster", "connect", "version", "tls", "privileges", "clock", "latency", "write"}) {
    EXPECT_TRUE(IsOk(findings, check)) << check << " " << findings[check];
  }
  EXPECT_TRUE((*store)->Scan("doctor", "", "", 10).value().empty());
}

TEST(Doctor, GoodDynamoDbStorePassesEveryCheckAndIsUnchanged) {
  if (const std::string reason = DynamoDbServer::Unavailable(); !reason.empty()) {
    GTEST_SKIP() << reason;
  }
  DynamoDbServer& server = DynamoDbServer::Shared();
  const std::string table = UniqueName("muster");
  const std::string url = server.Url(table);
  auto before = Findings(url);
  EXPECT_NE(before["table"].find("first use creates it"), std::string::npos) << before["table"];
  EXPECT_THROW(server.Call("DescribeTable", R"({"TableName":")" + table + "\"}"),
               std::runtime_error);
  auto store = store::OpenStore(url, RealEnv());
  ASSERT_TRUE(store) << store.error().ToString();
  auto findings = Findings(url);
  for (const char* check : {"muster", "connect", "tls", "table", "permissions", "billing",
                            "recovery", "schema", "clock", "latency", "write"}) {
    EXPECT_TRUE(IsOk(findings, check)) << check << " " << findings[check];
  }
  EXPECT_TRUE((*store)->Scan("doctor", "", "", 10).value().empty());
}

TEST(Doctor, WarnsAboutProvisionedCapacityAndMissingBackups) {
  if (const std::string reason = DynamoDbServer::Unavailable(); !reason.empty()) {
    GTEST_SKIP() << reason;
  }
  DynamoDbGate gate(DynamoDbServer::Shared().port());
  const std::string url = DynamoDbServer::Url(UniqueName("poor"), gate.port());
  ASSERT_TRUE(store::OpenStore(url, RealEnv()));
  gate.SetRule([&](const std::string& operation,
                   const HttpServerRequest& request) -> std::optional<HttpServerReply> {
    if (operation == "DescribeContinuousBackups") {
      return Answer(200, R"({"ContinuousBackupsDescription":{"PointInTimeRecoveryDescription":)"
                         R"({"PointInTimeRecoveryStatus":"DISABLED"}}})");
    }
    HttpServerReply reply = gate.PassOn(request);
    const size_t billing = reply.bytes.find("PAY_PER_REQUEST");
    if (operation == "DescribeTable") reply.bytes.replace(billing, 15, "PROVISIONED----");
    return reply;
  });
  auto findings = Findings(url);
  EXPECT_TRUE(findings["billing"].starts_with("warn: ")) << findings["billing"];
  EXPECT_TRUE(findings["recovery"].starts_with("warn: ")) << findings["recovery"];
  EXPECT_TRUE(IsOk(findings, "write")) << findings["write"];
}

TEST(Doctor, WarnsThatAMemoryStoreIsNotDurable) {
  EXPECT_TRUE(Findings("memory:")["durability"].starts_with("warn: "));
}

}  // namespace
}  // namespace muster::testing
