// Failures of stores in the field. Each must end with one line of error, one line of hint, the
// right exit code, and nothing written.

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "cli/program.h"
#include "muster/store.h"
#include "sql/sqlite.h"
#include "support/dynamodb_gate.h"
#include "support/dynamodb_server.h"
#include "support/postgres_server.h"
#include "support/shared_server.h"

namespace muster::testing {
namespace {

void CreateSqlite(const std::string& path) {
  auto store = store::OpenStore("sqlite:" + path, RealEnv());
  ASSERT_TRUE(store) << store.error().ToString();
  for (int i = 0; i < 200; ++i) {
    store::Record record;
    record.kind = "test";
    record.queue = "q";
    record.key = std::to_string(i);
    record.body = "\"" + std::string(500, 'x') + "\"";
    const store::Change change = store::Change::Put(record, store::Due::AtOnce());
    ASSERT_TRUE((*store)->Write({&change, 1}));
  }
}

Outcome Doctor(const std::string& store, const std::map<std::string, std::string>& variables = {}) {
  return RunMuster({"doctor", "--store", store}, ".", variables);
}

TEST(BadStore, UnreadableUrls) {
  for (const char* url :
       {"nonsense", "mysql://h/db", "sqlite:", "sqlite:a.db?mode=x", "postgresql://h:x/",
        "postgresql://u:${env:MUSTER_TEST_UNSET}@h/db", "sqlite:%zz", "dynamodb://eu-west-1", ""}) {
    Outcome outcome = Doctor(url);
    EXPECT_EQ(NotAClearError(outcome, 2), "") << url;
    EXPECT_EQ(outcome.out, "");
  }
}

TEST(BadStore, PlainTextPasswordIsRefusedAndNotShown) {
  for (const char* url :
       {"postgresql://u:hunter22@127.0.0.1/db", "postgresql://h/db?password=hunter22"}) {
    Outcome outcome = Doctor(url);
    EXPECT_EQ(NotAClearError(outcome, 2), "");
    EXPECT_EQ((outcome.out + outcome.err).find("hunter22"), std::string::npos) << outcome.err;
  }
}

TEST(BadStore, MistypedNameIsNoEmptyStore) {
  const TempFolder folder;
  const std::string file = folder / "typo.db";
  for (const std::vector<std::string>& command :
       std::vector<std::vector<std::string>>{{"list"},
                                             {"status", "m"},
                                             {"watch", "m"},
                                             {"history", "m"},
                                             {"resume", "m"},
                                             {"retry", "m"},
                                             {"cancel", "m"},
                                             {"work", "status"},
                                             {"work", "list"},
                                             {"work", "show"},
                                             {"work", "retry", "--all"},
                                             {"work", "release", "i"},
                                             {"work", "delete", "r"},
                                             {"work", "reset", "r"},
                                             {"states", "list"},
                                             {"states", "show", "e"},
                                             {"states", "history", "e"},
                                             {"states", "stop", "e"},
                                             {"states", "redrive", "e"}}) {
    std::vector<std::string> arguments = command;
    arguments.insert(arguments.end(), {"--store", "sqlite:" + file});
    const Outcome outcome = RunMuster(arguments);
    EXPECT_EQ(NotAClearError(outcome, 1), "") << command.back();
    EXPECT_NE(outcome.err.find("no store at " + file), std::string::npos) << outcome.err;
    EXPECT_FALSE(std::filesystem::exists(file));
  }
}

TEST(BadStore, MissingSqliteFolder) {
  TempFolder folder;
  EXPECT_EQ(NotAClearError(Doctor("sqlite:" + (folder / "none/a.db")), 5), "");
  EXPECT_TRUE(folder.Snapshot().empty());
}

TEST(BadStore, FileThatIsNotADatabase) {
  TempFolder folder;
  std::ofstream(folder / "a.db") << std::string(10'000, 'x');
  auto before = folder.Snapshot();
  EXPECT_EQ(NotAClearError(Doctor("sqlite:" + (folder / "a.db")), 1), "");
  EXPECT_EQ(folder.Snapshot(), before);
}

TEST(BadStore, ASqliteFileWithDamagedPages) {
  TempFolder folder;
  const std::string path = folder / "a.db";
  CreateSqlite(path);
  ASSERT_GT(std::filesystem::file_size(path), 40'960U);
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  file.seekp(20'480);
  file << std::string(8192, '\xA5');
  file.close();
  Outcome outcome = Doctor("sqlite:" + path);
  EXPECT_EQ(NotAClearError(outcome, 1), "");
}

TEST(BadStore, ASqliteFileOfANewerSchemaVersion) {
  TempFolder folder;
  const std::string path = folder / "a.db";
  CreateSqlite(path);
  {
    auto db =
        sql::SqliteDb::Open(path, sql::SqliteDb::Mode::kExisting, std::chrono::seconds(1)).value();
    ASSERT_TRUE(db->Execute("UPDATE muster_schema SET version = 999"));
  }
  auto before = folder.Snapshot();
  Outcome outcome = Doctor("sqlite:" + path);
  EXPECT_EQ(NotAClearError(outcome, 1), "");
  EXPECT_NE(outcome.err.find("999"), std::string::npos) << outcome.err;
  EXPECT_EQ(folder.Snapshot(), before);
}

TEST(BadStore, UnwritableFolder) {
  TempFolder folder;
  CreateSqlite(folder / "a.db");
  std::filesystem::permissions(folder.path(), std::filesystem::perms{0555});
  std::filesystem::permissions(folder / "a.db", std::filesystem::perms{0444});
  // Root may write everywhere, so run as another user.
  std::vector<std::string> command{MUSTER_PROGRAM, "doctor", "--store",
                                   "sqlite:" + (folder / "a.db")};
  if (geteuid() == 0) {
    const std::vector<std::string> as_nobody{"setpriv", "--reuid=65534", "--regid=65534",
                                             "--clear-groups"};
    command.insert(command.begin(), as_nobody.begin(), as_nobody.end());
  }
  auto before = folder.Snapshot();
  EXPECT_EQ(NotAClearError(RunCommand(command), 5), "");
  EXPECT_EQ(folder.Snapshot(), before);
}

// Runs `script` in its own mount namespace: $1 is a small disk, $2 the program.
Outcome OnSmallDisk(const std::string& script) {
  TempFolder mount_point;
  std::vector<std::string> command{"unshare", "--mount"};
  if (geteuid() != 0) command = {"unshare", "--mount", "--map-root-user"};
  const std::string mounted = "mount -t tmpfs -o size=4m none \"$1\" || exit 99; " + script;
  for (const std::string& argument :
       {std::string("sh"), std::string("-c"), mounted, std::string("sh"), mount_point.path(),
        std::string(MUSTER_PROGRAM)}) {
    command.push_back(argument);
  }
  return RunCommand(command);
}

bool MountingIsForbidden(const Outcome& outcome) {
  return outcome.exit_code == 99 || outcome.err.starts_with("unshare:");
}

TEST(BadStore, AReadOnlyDisk) {
  Outcome outcome =
      OnSmallDisk("mount -o remount,ro \"$1\" && \"$2\" doctor --store \"sqlite:$1/a.db\"");
  if (MountingIsForbidden(outcome)) GTEST_SKIP() << "cannot mount on this machine: " << outcome.err;
  EXPECT_EQ(NotAClearError(outcome, 5), "");
  EXPECT_NE(outcome.err.find("Read-only file system"), std::string::npos) << outcome.err;
}

TEST(BadStore, AFullDisk) {
  Outcome outcome = OnSmallDisk(
      "dd if=/dev/zero of=\"$1/fill\" bs=64k 2>/dev/null; "
      "\"$2\" doctor --store \"sqlite:$1/a.db\"; code=$?; "
      "[ \"$(ls \"$1\")\" = fill ] || echo 'something was written'; exit $code");
  if (MountingIsForbidden(outcome)) GTEST_SKIP() << "cannot mount on this machine: " << outcome.err;
  EXPECT_EQ(NotAClearError(outcome, 75), "");
  EXPECT_EQ(outcome.out.find("something was written"), std::string::npos);
}

TEST(BadStore, UnreachableServer) {
  // Nothing listens on port 1.
  EXPECT_EQ(NotAClearError(Doctor("postgresql://me@127.0.0.1:1/db"), 5), "");
}

class BadPostgres : public ::testing::Test {
 protected:
  static PostgresServer& Server() { return PostgresServer::Shared(); }

  static std::string UrlOf(const std::string& user, const std::string& parameters = "") {
    return Server().UrlAs(user) + parameters;
  }

  // A unique role: roles belong to the whole server.
  static std::string CreateRole(const std::string& name, const std::string& options = "") {
    const std::string role = UniqueName(name);
    Server().Exec("DROP ROLE IF EXISTS " + role + "; CREATE ROLE " + role + " LOGIN " + options);
    return role;
  }
};

TEST_F(BadPostgres, AWrongPassword) {
  Outcome outcome = Doctor(UrlOf("guarded:${env:PW}"), {{"PW", "wrong-password"}});
  EXPECT_EQ(NotAClearError(outcome, 5), "");
  EXPECT_EQ((outcome.out + outcome.err).find("wrong-password"), std::string::npos) << outcome.err;
}

TEST_F(BadPostgres, NoPassword) { EXPECT_EQ(NotAClearError(Doctor(UrlOf("guarded")), 5), ""); }

TEST_F(BadPostgres, ADatabaseThatDoesNotExist) {
  const std::string port = std::to_string(Server().port());
  EXPECT_EQ(NotAClearError(Doctor("postgresql://muster@127.0.0.1:" + port + "/nowhere"), 1), "");
}

TEST_F(BadPostgres, RoleWithoutPermissionToCreateTheSchema) {
  Outcome outcome = Doctor(UrlOf(CreateRole("poor"), "?namespace=not_there"));
  EXPECT_EQ(NotAClearError(outcome, 5), "");
  EXPECT_NE(outcome.err.find("GRANT CREATE"), std::string::npos) << outcome.err;
}

TEST_F(BadPostgres, RoleWithoutPermissionToUseTheTables) {
  ASSERT_TRUE(store::OpenStore(UrlOf("muster", "?namespace=closed"), RealEnv()));
  Outcome outcome = Doctor(UrlOf(CreateRole("stranger"), "?namespace=closed"));
  EXPECT_EQ(NotAClearError(outcome, 5), "");
  EXPECT_NE(outcome.err.find("GRANT USAGE"), std::string::npos) << outcome.err;
}

TEST_F(BadPostgres, ReadOnlyServer) {
  const std::string reader = CreateRole("reader", "SUPERUSER");
  Server().Exec("ALTER ROLE " + reader + " SET default_transaction_read_only = on");
  EXPECT_EQ(NotAClearError(Doctor(UrlOf(reader)), 5), "");
}

TEST_F(BadPostgres, ASchemaOfANewerVersion) {
  ASSERT_TRUE(store::OpenStore(UrlOf("muster", "?namespace=future"), RealEnv()));
  Server().Exec("UPDATE future.schema_version SET version = 999");
  Outcome outcome = Doctor(UrlOf("muster", "?namespace=future"));
  EXPECT_EQ(NotAClearError(outcome, 1), "");
  EXPECT_NE(outcome.err.find("999"), std::string::npos) << outcome.err;
}

// Well-formed credentials.
const std::map<std::string, std::string> kCredentials = {
    {"AWS_ACCESS_KEY_ID", "AKIDEXAMPLE"}, {"AWS_SECRET_ACCESS_KEY", "open-sesame-and-more"}};

// A server that gives every request the same response.
Outcome DoctorAnswered(const HttpServerReply& reply) {
  HttpServer server([&](const HttpServerRequest&) { return reply; });
  return Doctor("dynamodb://eu-west-1/muster?endpoint=" + server.Url(""), kCredentials);
}

TEST(BadDynamoDb, WrongCredentials) {
  for (const char* error : {"UnrecognizedClientException", "InvalidSignatureException"}) {
    const Outcome outcome = DoctorAnswered(DynamoDbError(400, error, "The token is invalid."));
    EXPECT_EQ(NotAClearError(outcome, 5), "");
    EXPECT_NE(outcome.err.find("AWS_ACCESS_KEY_ID"), std::string::npos) << outcome.err;
    EXPECT_EQ((outcome.out + outcome.err).find("open-sesame"), std::string::npos) << outcome.err;
  }
}

TEST(BadDynamoDb, AnExpiredToken) {
  const Outcome outcome =
      DoctorAnswered(DynamoDbError(400, "ExpiredTokenException", "The security token has expired"));
  EXPECT_EQ(NotAClearError(outcome, 5), "");
  EXPECT_NE(outcome.err.find("expired"), std::string::npos) << outcome.err;
}

TEST(BadDynamoDb, UserWithoutPermissions) {
  const Outcome outcome = DoctorAnswered(
      DynamoDbError(400, "AccessDeniedException", "User: x is not authorized to perform: y"));
  EXPECT_EQ(NotAClearError(outcome, 5), "");
  EXPECT_NE(outcome.err.find("policy"), std::string::npos) << outcome.err;
}

TEST(BadDynamoDb, NoCredentialsAtAll) {
  const Outcome outcome = Doctor("dynamodb://eu-west-1/muster?endpoint=http://127.0.0.1:1",
                                 {{"AWS_ACCESS_KEY_ID", ""},
                                  {"AWS_SECRET_ACCESS_KEY", ""},
                                  {"AWS_SHARED_CREDENTIALS_FILE", "/nowhere/credentials"},
                                  {"AWS_CONFIG_FILE", "/nowhere/config"},
                                  {"AWS_EC2_METADATA_DISABLED", "true"}});
  EXPECT_EQ(NotAClearError(outcome, 2), "");
}

TEST(BadDynamoDb, UnreachableEndpoint) {
  const Outcome outcome =
      Doctor("dynamodb://eu-west-1/muster?endpoint=http://127.0.0.1:1", kCredentials);
  EXPECT_EQ(NotAClearError(outcome, 5), "");
}

class BadDynamoDbTable : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string reason = DynamoDbServer::Unavailable(); !reason.empty()) {
      GTEST_SKIP() << reason;
    }
  }

  static std::string UrlOf(const std::string& table) {
    return "dynamodb://local/" + table + "?endpoint=" + DynamoDbServer::Shared().Endpoint();
  }
};

TEST_F(BadDynamoDbTable, MissingTable) {
  const Outcome outcome = Doctor(UrlOf(UniqueName("nowhere")), kCredentials);
  EXPECT_EQ(NotAClearError(outcome, 1), "");
  EXPECT_NE(outcome.err.find("create=true"), std::string::npos) << outcome.err;
}

TEST_F(BadDynamoDbTable, WithOtherKeys) {
  const std::string table = UniqueName("alien");
  DynamoDbServer::Shared().Call(
      "CreateTable", R"({"TableName":")" + table +
                         R"(","BillingMode":"PAY_PER_REQUEST",)"
                         R"("AttributeDefinitions":[{"AttributeName":"id","AttributeType":"S"}],)"
                         R"("KeySchema":[{"AttributeName":"id","KeyType":"HASH"}]})");
  const Outcome outcome = Doctor(UrlOf(table), kCredentials);
  EXPECT_EQ(NotAClearError(outcome, 1), "");
  EXPECT_NE(outcome.err.find("id S HASH"), std::string::npos) << outcome.err;
}

TEST_F(BadDynamoDbTable, OfANewerSchemaVersion) {
  const std::string table = UniqueName("future");
  ASSERT_TRUE(store::OpenStore(DynamoDbServer::Shared().Url(table), RealEnv()));
  DynamoDbServer::Shared().Call("PutItem",
                                R"({"TableName":")" + table +
                                    R"(","Item":{"pk":{"S":"muster"},"sk":{"S":"schema"},)"
                                    R"("version":{"N":"999"}}})");
  const Outcome outcome = Doctor(UrlOf(table), kCredentials);
  EXPECT_EQ(NotAClearError(outcome, 1), "");
  EXPECT_NE(outcome.err.find("999"), std::string::npos) << outcome.err;
}

}  // namespace
}  // namespace muster::testing
