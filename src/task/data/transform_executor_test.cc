#include "task/data/transform_executor.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include "core/json.h"
#include "core/sha256.h"
#include "muster/executors.h"
#include "sql/sqlite.h"
#include "support/postgres_server.h"
#include "support/temporary_folder.h"
#include "task/data/copy_executor.h"
#include "task/data/transform_target.h"
#include "task/test_context.h"

namespace muster::task {
namespace {

// A target database: people, and sites that belong to them.
class Database {
 public:
  virtual ~Database() = default;
  virtual std::string Url() const = 0;
  virtual std::string Name(const std::string& table) const = 0;  // as errors and results have it
  virtual std::string Ask(const std::string& sql) = 0;
};

class SqliteDatabase : public Database {
 public:
  SqliteDatabase() {
    db_ = *sql::SqliteDb::Open(folder_.At("t.db"), sql::SqliteDb::Mode::kCreate,
                               std::chrono::milliseconds(5000));
    EXPECT_TRUE(db_->Execute(
        "CREATE TABLE cont_people (id TEXT PRIMARY KEY, name TEXT NOT NULL, age INTEGER,"
        " active INTEGER);"
        "CREATE TABLE cont_sites (id TEXT PRIMARY KEY, owner TEXT REFERENCES cont_people(id))"));
  }
  std::string Url() const override { return "sqlite:" + folder_.path() + "/t.db"; }
  std::string Name(const std::string& table) const override { return "cont_" + table; }
  std::string Ask(const std::string& sql) override {
    auto answer = db_->QueryText(sql);
    return answer ? *answer : answer.error().ToString();
  }

 private:
  testing::TemporaryFolder folder_;
  std::unique_ptr<sql::SqliteDb> db_;
};

class PostgresDatabase : public Database {
 public:
  explicit PostgresDatabase(testing::PostgresServer& server) : server_(server) {
    server_.Exec(
        "SET client_min_messages = warning; DROP SCHEMA IF EXISTS cont CASCADE; CREATE SCHEMA cont;"
        "CREATE TABLE cont.people (id text PRIMARY KEY, name text NOT NULL, age int, active bool);"
        "CREATE TABLE cont.sites (id text PRIMARY KEY, owner text REFERENCES cont.people(id))");
  }
  std::string Url() const override { return server_.Url(); }
  std::string Name(const std::string& table) const override { return "cont." + table; }
  std::string Ask(const std::string& sql) override { return server_.Exec(sql); }

 private:
  testing::PostgresServer& server_;
};

class TransformTest : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (GetParam() == "Sqlite") {
      database_ = std::make_unique<SqliteDatabase>();
      return;
    }
    const std::string missing = testing::PostgresServer::Unavailable();
    if (!missing.empty()) GTEST_SKIP() << "PostgreSQL: " << missing;
    database_ = std::make_unique<PostgresDatabase>(testing::PostgresServer::Shared());
  }

  void Stage(const std::string& object, const std::string& csv) {
    folder_.Write("data/" + object + ".csv", csv);
    const auto outcome =
        MakeCopyExecutor()->Start({.resource = "muster:copy",
                                   .input = Json{{"source", "csv:" + folder_.path() + "/data"},
                                                 {"object", object},
                                                 {"staging", folder_.path() + "/staging"}},
                                   .credentials = nullptr,
                                   .token = std::to_string(++calls_),
                                   .execution = "run",
                                   .state = "Copy"},
                                  context_);
    ASSERT_TRUE(std::holds_alternative<states::TaskSuccess>(outcome));
  }

  states::TaskOutcome Start(const std::string& script, const std::string& table = "people") {
    folder_.Write("plan/scripts/load.sql", script);
    return StartFile("scripts/load.sql", table);
  }

  states::TaskOutcome StartFile(const std::string& file, const std::string& table) {
    return executor_->Start({.resource = "muster:transform",
                             .input = Json{{"script", file},
                                           {"plan_folder", folder_.path() + "/plan"},
                                           {"staging", folder_.path() + "/staging"},
                                           {"target", database_->Url()},
                                           {"arguments",
                                            {{"TENANT_ID", "acme"},
                                             {"ENTITY_NAME", "load"},
                                             {"TARGET_SCHEMA", "cont"},
                                             {"TARGET_TABLE", table}}},
                                           {"references", references_},
                                           {"sha256", sha256_}},
                             .credentials = nullptr,
                             .token = std::to_string(++calls_),
                             .execution = "run",
                             .state = "Load"},
                            context_);
  }

  Json Succeed(const std::string& script, const std::string& table = "people") {
    const states::TaskOutcome outcome = Start(script, table);
    if (const auto* failure = std::get_if<states::TaskFailure>(&outcome)) {
      ADD_FAILURE() << failure->error << ": " << failure->cause;
      return nullptr;
    }
    return std::get<states::TaskSuccess>(outcome).output;
  }

  states::TaskFailure Fail(const std::string& script, const std::string& table = "people") {
    const states::TaskOutcome outcome = Start(script, table);
    const auto* failure = std::get_if<states::TaskFailure>(&outcome);
    return failure != nullptr ? *failure : states::TaskFailure{"none", ""};
  }

  std::string Name(const std::string& table) const { return database_->Name(table); }

  testing::TemporaryFolder folder_;
  std::unique_ptr<Database> database_;
  std::unique_ptr<states::TaskExecutor> executor_ = MakeTransformExecutor();
  TestContext context_;
  Json references_ = Json::object();
  std::string sha256_;
  int calls_ = 0;
};

constexpr const char* kPeople = "Id,Name,Age,Active\np1,Ann,40,true\np2,\"B'o\"\"b\",,false\n";
constexpr const char* kLoadPeople =
    "SELECT Id AS id, Name || ' of ' || getvariable('TENANT_ID') AS name,\n"
    "  Age::INTEGER AS age, Active::BOOLEAN AS active FROM \"User\";\n";

TEST(TransformTarget, MissingSqliteFileIsCreatedWithItsTables) {
  const testing::TemporaryFolder folder;
  const std::string tables = folder.Write("tables.sql", "CREATE TABLE s_a (id TEXT PRIMARY KEY);");
  const std::string url = "sqlite:" + folder.At("new.db") + "?tables=" + tables;
  ASSERT_TRUE(CheckTransformTarget(url));
  for (int i = 0; i < 2; ++i) {
    const auto target = OpenTransformTarget(url, RealEnv());
    ASSERT_TRUE(target) << target.error().ToString();
    EXPECT_TRUE((*target)->Describe("s", "a"));
  }
  std::filesystem::remove(tables);
  EXPECT_TRUE(CheckTransformTarget(url)) << "what has its tables needs no SQL";
  EXPECT_TRUE(OpenTransformTarget(url, RealEnv()));
  // Half of it must not appear.
  folder.Write("tables.sql", "CREATE TABLE s_a (id TEXT); CREATE TABLE");
  const std::string other = "sqlite:" + folder.At("other.db") + "?tables=" + tables;
  EXPECT_FALSE(OpenTransformTarget(other, RealEnv()));
  EXPECT_FALSE(std::filesystem::exists(folder.At("other.db")));
  EXPECT_FALSE(CheckTransformTarget("sqlite:" + folder.At("x.db") + "?tables=/no/such.sql"));
  EXPECT_FALSE(CheckTransformTarget("sqlite:" + folder.At("x.db") + "?table=a"));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 2);
}

TEST(TransformTarget, TasksThatBeginTogetherCreateOneFile) {
  const testing::TemporaryFolder folder;
  const std::string tables = folder.Write("tables.sql", "CREATE TABLE s_a (id TEXT PRIMARY KEY);");
  const std::string path = folder.At("new.db");
  {
    std::vector<std::jthread> tasks;
    for (int i = 0; i < 4; ++i) {
      tasks.emplace_back([&, i] {
        ASSERT_TRUE(OpenTransformTarget("sqlite:" + path + "?tables=" + tables, RealEnv()));
        // What is in a file that another has created stays.
        const auto db =
            sql::SqliteDb::Open(path, sql::SqliteDb::Mode::kExisting, std::chrono::seconds(10));
        ASSERT_TRUE(db) << db.error().ToString();
        EXPECT_TRUE((*db)->Execute("INSERT INTO s_a VALUES (" + std::to_string(i) + ")"));
      });
    }
  }
  const auto db =
      sql::SqliteDb::Open(path, sql::SqliteDb::Mode::kReadOnly, std::chrono::seconds(10)).value();
  EXPECT_EQ(db->QueryInt("SELECT count(*) FROM s_a").value(), 4);
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    EXPECT_NE(entry.path().extension(), ".tmp") << entry.path();
  }
}

TEST_P(TransformTest, SelectedRowsAreLoadedAndCounted) {
  Stage("User", kPeople);
  EXPECT_EQ(Succeed(kLoadPeople), (Json{{"read", 2},
                                        {"loaded", 2},
                                        {"rejected", 0},
                                        {"tables", {{Name("people"), 2}}},
                                        {"objects", {{"User", 2}}}}));
  EXPECT_EQ(
      database_->Ask("SELECT name FROM " + Name("people") + " WHERE id = 'p2' AND NOT active"),
      "B'o\"b of acme");
  EXPECT_EQ(database_->Ask("SELECT count(*) FROM " + Name("people") + " WHERE age IS NULL"), "1");
}

TEST_P(TransformTest, ARepetitionReplacesRows) {
  Stage("User", kPeople);
  Succeed(kLoadPeople);
  Stage("User", "Id,Name,Age,Active\np2,Bert,7,true\np3,Cem,8,true\n");
  EXPECT_EQ(Succeed(kLoadPeople)["loaded"], 2);
  EXPECT_EQ(database_->Ask("SELECT count(*) FROM " + Name("people")), "3");
  EXPECT_EQ(database_->Ask("SELECT name FROM " + Name("people") + " WHERE id = 'p2'"),
            "Bert of acme");
}

TEST_P(TransformTest, RejectedRowsAreKeptWithTheirReason) {
  Stage("User", kPeople);
  const Json result = Succeed(
      "SELECT Id AS id, Name AS name, CASE WHEN Age IS NULL THEN 'no age' END AS _rejected"
      " FROM \"User\"");
  EXPECT_EQ(result["read"], 2);
  EXPECT_EQ(result["loaded"], 1);
  EXPECT_EQ(result["rejected"], 1);
  std::ifstream file(folder_.path() + "/staging/rejected/load.jsonl");
  const std::string kept{std::istreambuf_iterator<char>(file), {}};
  EXPECT_NE(kept.find("\"_rejected\":\"no age\""), std::string::npos) << kept;
}

TEST_P(TransformTest, TablesInTheSchemaTargetAreLoadedInTheirOrder) {
  Stage("User", kPeople);
  const Json result = Succeed(
      "CREATE TABLE target.people AS SELECT Id AS id, Name AS name FROM \"User\";\n"
      "SELECT 's-' || Id AS id, Id AS owner FROM \"User\"",
      "sites");
  EXPECT_EQ(result["loaded"], 2);
  EXPECT_EQ(result["tables"], (Json{{Name("people"), 2}, {Name("sites"), 2}}));
}

TEST_P(TransformTest, AMissingParentIsNamedAndNothingIsLoaded) {
  Stage("User", kPeople);
  Succeed(kLoadPeople);
  Stage("Site", "Id,Owner\ns1,p1\ns2,p9\n");
  references_ = {{"cont.people", 200}, {"a.sites", 250}, {"cont.sites", 300}};
  const states::TaskFailure failure = Fail("SELECT Id AS id, Owner AS owner FROM Site", "sites");
  EXPECT_EQ(failure.error, "Transform.ForeignKey");
  EXPECT_NE(failure.cause.find(": rank 200 loads cont.people ("), std::string::npos)
      << failure.cause;
  EXPECT_NE(failure.cause.find("people"), std::string::npos) << failure.cause;
  EXPECT_NE(failure.cause.find("p9"), std::string::npos) << failure.cause;
  EXPECT_NE(failure.cause.find("check the ranks"), std::string::npos) << failure.cause;
  EXPECT_EQ(database_->Ask("SELECT count(*) FROM " + Name("sites")), "0");
}

TEST_P(TransformTest, AnErrorNamesFileLineAndStatement) {
  Stage("User", kPeople);
  const states::TaskFailure failure =
      Fail("CREATE TEMP TABLE a AS SELECT 1;\nSELECT\n  nme FROM \"User\"");
  EXPECT_EQ(failure.error, "Transform.Invalid");
  EXPECT_EQ(failure.cause.find("scripts/load.sql:3: statement 2: Binder Error"), 0u)
      << failure.cause;
}

TEST_P(TransformTest, UnstagedObjectIsReportedWithTheStagedOnes) {
  Stage("User", kPeople);
  const states::TaskFailure failure = Fail("SELECT * FROM Usr");
  EXPECT_NE(failure.cause.find("staged objects: User"), std::string::npos) << failure.cause;
}

TEST_P(TransformTest, MissingOrDuplicateKeysAreRejected) {
  Stage("User", "Id,Name\np1,Ann\np1,Bob\n,Cem\n");
  EXPECT_NE(Fail("SELECT Id AS id, Name AS name FROM \"User\" WHERE Id IS NOT NULL")
                .cause.find(R"(have the key {"id":"p1"})"),
            std::string::npos);
  EXPECT_NE(Fail("SELECT Id AS id, Name AS name FROM \"User\"").cause.find("1 rows for"),
            std::string::npos);
  EXPECT_NE(Fail("SELECT Name AS name FROM \"User\"").cause.find("of the primary key"),
            std::string::npos);
}

// Retrying would not help: the plan's retries stop at Transform.Invalid.
TEST_P(TransformTest, ARowThatBreaksAConstraintIsTheDatasFault) {
  Stage("User", kPeople);
  EXPECT_EQ(Fail("SELECT Id AS id, NULL AS name FROM \"User\"").error, "Transform.Invalid");
}

TEST_P(TransformTest, UnknownTablesAndColumnsAreNamed) {
  Stage("User", kPeople);
  EXPECT_EQ(Fail(kLoadPeople, "peple").error, "Transform.NotFound");
  EXPECT_NE(Fail("SELECT Id AS id, Name AS nmae FROM \"User\"").cause.find("no column 'nmae'"),
            std::string::npos);
  EXPECT_NE(Fail("CREATE TEMP TABLE a AS SELECT 1").cause.find("no SELECT for"), std::string::npos);
}

TEST_P(TransformTest, ScriptsOutsideThePlansFolderAreRefused) {
  folder_.Write("plan/a.sql", "SELECT 1");
  const std::string outside = folder_.Write("outside.sql", kLoadPeople);
  std::filesystem::create_symlink(outside, folder_.path() + "/plan/link.sql");
  for (const std::string& path : {std::string("../outside.sql"), outside, std::string("link.sql"),
                                  std::string("scripts/../../outside.sql")}) {
    const states::TaskOutcome outcome = StartFile(path, "people");
    EXPECT_EQ(std::get<states::TaskFailure>(outcome).error, "Transform.Invalid") << path;
  }
  EXPECT_EQ(std::get<states::TaskFailure>(StartFile("none.sql", "people")).error,
            "Transform.NotFound");
}

TEST_P(TransformTest, ManyRowsComeInPages) {
  Stage("User", kPeople);
  EXPECT_EQ(
      Succeed("SELECT 'r' || range AS id, 'n' AS name, range AS age FROM range(120000)")["loaded"],
      120000);
  EXPECT_EQ(database_->Ask("SELECT count(*) FROM " + Name("people")), "120000");
}

TEST_P(TransformTest, AStopEndsTheScriptAndLoadsNothing) {
  Stage("User", kPeople);
  context_.stopping.request_stop();
  EXPECT_EQ(Fail("SELECT a.range || '' AS id, 'n' AS name FROM range(1000000000) a, range(10000000)"
                 " b WHERE a.range = b.range + 1")
                .error,
            "Transform.Cancelled");
  EXPECT_EQ(database_->Ask("SELECT count(*) FROM " + Name("people")), "0");
}

TEST_P(TransformTest, AScriptThatWasEditedSinceTheRunBeganIsNotRun) {
  Stage("Person", "Id,Name\n1,Ada\n");
  const std::string script = "SELECT Id AS id, Name AS name FROM Person;";
  sha256_ = Sha256Hex(script);
  Succeed(script);
  const states::TaskOutcome outcome = Start("SELECT Id AS id, 'x' AS name FROM Person;");
  const auto* failure = std::get_if<states::TaskFailure>(&outcome);
  ASSERT_NE(failure, nullptr);
  EXPECT_EQ(failure->error, "Transform.Incompatible");
  EXPECT_NE(failure->cause.find("was edited after the run began"), std::string::npos);
  EXPECT_EQ(database_->Ask("SELECT name FROM " + database_->Name("people")), "Ada");
}

INSTANTIATE_TEST_SUITE_P(Targets, TransformTest, ::testing::Values("Sqlite", "Postgres"),
                         [](const auto& test) { return test.param; });

// With its types and collations SQLite treats different texts as equal: one row would replace the
// other, and both would count as loaded.
TEST_P(TransformTest, StagedFileThatDiffersFromItsManifestIsNotLoaded) {
  Stage("People", "Id,Name\np1,Ann\n");
  folder_.Write("staging/People.jsonl", "{\"Id\":\"x\",\"Name\":\"another file\"}\n");
  const states::TaskOutcome outcome = Start("SELECT Id AS id, Name AS name FROM People");
  const auto* failure = std::get_if<states::TaskFailure>(&outcome);
  ASSERT_NE(failure, nullptr);
  EXPECT_EQ(failure->error, "Transform.Conflict");
  EXPECT_NE(failure->cause.find("People.jsonl is not what its manifest says"), std::string::npos)
      << failure->cause;
  EXPECT_EQ(database_->Ask("SELECT count(*) FROM " + database_->Name("people")), "0");
}

TEST(TransformKeys, ThatSqliteTreatsAsEqualAreRejected) {
  struct Case {
    std::string columns;
    std::string script;
    std::string refused;  // empty: none
  };
  const Case cases[] = {
      {"id TEXT COLLATE NOCASE PRIMARY KEY", "SELECT unnest(['A', 'a']) AS id", "id = 'a'"},
      {"id TEXT, PRIMARY KEY (id COLLATE RTRIM)", "SELECT unnest(['a', 'a ']) AS id", "id = 'a '"},
      {"id INTEGER PRIMARY KEY", "SELECT unnest(['1', '01']) AS id", "id = '01'"},
      {"id NUMERIC(9, 2) PRIMARY KEY", "SELECT unnest(['1', '1.0']) AS id", "id = '1.0'"},
      {"id INTEGER, v TEXT COLLATE NOCASE, PRIMARY KEY (id, v)",
       "SELECT 1 AS id, unnest(['x', 'X']) AS v", "id = 1, v = 'X'"},
      {"id TEXT PRIMARY KEY", "SELECT unnest(['A', 'a', '1', '01', 'a ']) AS id", ""},
      {"id TEXT COLLATE NOCASE PRIMARY KEY", "SELECT unnest(['A', 'b']) AS id", ""},
      {"id INTEGER PRIMARY KEY", "SELECT unnest([1, 2]) AS id", ""}};
  for (const Case& one : cases) {
    const testing::TemporaryFolder folder;
    auto db = *sql::SqliteDb::Open(folder.At("t.db"), sql::SqliteDb::Mode::kCreate,
                                   std::chrono::milliseconds(5000));
    ASSERT_TRUE(db->Execute("CREATE TABLE s_t (" + one.columns + ")"));
    folder.Write("load.sql", one.script);
    TestContext context;
    const auto outcome = MakeTransformExecutor()->Start(
        {.resource = "muster:transform",
         .input = Json{{"script", "load.sql"},
                       {"plan_folder", folder.path()},
                       {"staging", folder.path() + "/staging"},
                       {"target", "sqlite:" + folder.path() + "/t.db"},
                       {"arguments", {{"TARGET_SCHEMA", "s"}, {"TARGET_TABLE", "t"}}}},
         .credentials = nullptr,
         .token = "t",
         .execution = "run",
         .state = "Load"},
        context);
    SCOPED_TRACE(one.columns);
    const auto* failure = std::get_if<states::TaskFailure>(&outcome);
    if (one.refused.empty()) {
      ASSERT_EQ(failure, nullptr) << failure->cause;
      EXPECT_EQ(std::get<states::TaskSuccess>(outcome).output["loaded"].get<int64_t>(),
                *db->QueryInt("SELECT count(*) FROM s_t"));
      continue;
    }
    ASSERT_NE(failure, nullptr);
    EXPECT_EQ(failure->error, "Transform.Invalid");
    EXPECT_NE(failure->cause.find("the same key by SQLite's rules, for example " + one.refused),
              std::string::npos)
        << failure->cause;
    EXPECT_EQ(*db->QueryInt("SELECT count(*) FROM s_t"), 0);
  }
}

// Names with quotes reach the database as names.
TEST(TransformNames, WithQuotesAreAccepted) {
  const testing::TemporaryFolder folder;
  auto db = *sql::SqliteDb::Open(folder.At("t.db"), sql::SqliteDb::Mode::kCreate,
                                 std::chrono::milliseconds(5000));
  ASSERT_TRUE(db->Execute("CREATE TABLE \"we\"\"ird_ta'ble\" (\"i\"\"d\" TEXT PRIMARY KEY)"));
  folder.Write("load.sql", "SELECT 'x' AS \"i\"\"d\"");
  TestContext context;
  const auto outcome = MakeTransformExecutor()->Start(
      {.resource = "muster:transform",
       .input = Json{{"script", "load.sql"},
                     {"plan_folder", folder.path()},
                     {"staging", folder.path() + "/staging"},
                     {"target", "sqlite:" + folder.path() + "/t.db"},
                     {"arguments", {{"TARGET_SCHEMA", "we\"ird"}, {"TARGET_TABLE", "ta'ble"}}}},
       .credentials = nullptr,
       .token = "t",
       .execution = "run",
       .state = "Load"},
      context);
  ASSERT_TRUE(std::holds_alternative<states::TaskSuccess>(outcome))
      << std::get<states::TaskFailure>(outcome).cause;
}

}  // namespace
}  // namespace muster::task
