// Goal: lost rows, and rows without their parents, are found and named. Method: real copies and
// transforms on both databases; then target and staging folder are tampered with.

#include "task/data/reconcile_executor.h"

#include <gtest/gtest.h>

#include <fstream>

#include "core/json.h"
#include "sql/sqlite.h"
#include "support/postgres_server.h"
#include "support/temporary_folder.h"
#include "task/data/copy_executor.h"
#include "task/data/transform_executor.h"
#include "task/test_context.h"

namespace muster::task {
namespace {

class ReconcileTest : public ::testing::TestWithParam<std::string> {
 protected:
  bool sqlite() const { return GetParam() == "Sqlite"; }
  std::string Table(const std::string& name) const { return (sqlite() ? "cont_" : "cont.") + name; }

  void SetUp() override {
    if (sqlite()) {
      db_ = *sql::SqliteDb::Open(folder_.At("t.db"), sql::SqliteDb::Mode::kCreate,
                                 std::chrono::milliseconds(5000));
      target_ = "sqlite:" + folder_.path() + "/t.db";
    } else {
      const std::string missing = testing::PostgresServer::Unavailable();
      if (!missing.empty()) GTEST_SKIP() << "PostgreSQL: " << missing;
      server_ = &testing::PostgresServer::Shared();
      Change(
          "SET client_min_messages = warning; DROP SCHEMA IF EXISTS cont CASCADE;"
          "CREATE SCHEMA cont");
      target_ = server_->Url();
    }
    Change("CREATE TABLE " + Table("people") + " (id TEXT PRIMARY KEY, name TEXT)");
    Change("CREATE TABLE " + Table("sites") + " (id TEXT PRIMARY KEY, owner TEXT REFERENCES " +
           Table("people") + "(id))");
    folder_.Write("data/Person.csv", "Id,Name\n1,Ada\n2,Bo\n3,\n");
    folder_.Write("data/Site.csv", "Id,Owner\na,1\nb,2\n");
    folder_.Write("people.sql",
                  "SELECT Id AS id, Name AS name, CASE WHEN Name IS NULL THEN 'no name' END AS "
                  "_rejected FROM Person;");
    folder_.Write("sites.sql", "SELECT Id AS id, Owner AS owner FROM Site;");
  }

  void Change(const std::string& sql) {
    if (server_ != nullptr) {
      server_->Exec(sql);
    } else {
      const Status done = db_->Execute(sql);
      ASSERT_TRUE(done) << done.error().ToString();
    }
  }

  states::TaskOutcome Call(states::TaskExecutor& executor, const std::string& resource,
                           const Json& input) {
    return executor.Start({.resource = resource,
                           .input = input,
                           .credentials = nullptr,
                           .token = std::to_string(++calls_),
                           .execution = "run",
                           .state = "S"},
                          context_);
  }
  Json Succeed(const states::TaskOutcome& outcome) {
    if (const auto* failure = std::get_if<states::TaskFailure>(&outcome)) {
      ADD_FAILURE() << failure->error << ": " << failure->cause;
      return {{"Error", failure->error}};
    }
    return std::get<states::TaskSuccess>(outcome).output;
  }

  void Extract(const std::string& object) {
    extracted_[object] = Succeed(Call(*copy_, "muster:copy",
                                      {{"source", "csv:" + folder_.path() + "/data"},
                                       {"object", object},
                                       {"staging", folder_.path() + "/staging"}}));
  }
  void Load(const std::string& table) {
    transformed_["load-" + table] = Succeed(Call(*transform_, "muster:transform",
                                                 {{"script", table + ".sql"},
                                                  {"plan_folder", folder_.path()},
                                                  {"staging", folder_.path() + "/staging"},
                                                  {"target", target_},
                                                  {"arguments",
                                                   {{"ENTITY_NAME", "load-" + table},
                                                    {"TARGET_SCHEMA", "cont"},
                                                    {"TARGET_TABLE", table}}}}));
  }
  states::TaskOutcome Reconcile() {
    return Call(*reconcile_, "muster:reconcile",
                {{"rank", 600},
                 {"staging", folder_.path() + "/staging"},
                 {"target", target_},
                 {"extracted", extracted_},
                 {"transformed", transformed_},
                 {"scripts",
                  {{"load-people",
                    {{"schema", "cont"}, {"table", "people"}, {"counts", {{"people", "Person"}}}}},
                   {"load-sites",
                    {{"schema", "cont"},
                     {"table", "sites"},
                     {"counts", {{"sites", "Site"}}},
                     {"references", {{"cont.people", 500}}}}}}}});
  }
  states::TaskFailure Fail() {
    const states::TaskOutcome outcome = Reconcile();
    const auto* failure = std::get_if<states::TaskFailure>(&outcome);
    EXPECT_NE(failure, nullptr);
    return failure == nullptr ? states::TaskFailure{} : *failure;
  }

  testing::TemporaryFolder folder_;
  std::unique_ptr<sql::SqliteDb> db_;
  testing::PostgresServer* server_ = nullptr;
  std::string target_;
  std::unique_ptr<states::TaskExecutor> copy_ = MakeCopyExecutor();
  std::unique_ptr<states::TaskExecutor> transform_ = MakeTransformExecutor();
  std::unique_ptr<states::TaskExecutor> reconcile_ = MakeReconcileExecutor();
  Json extracted_ = Json::object();
  Json transformed_ = Json::object();
  TestContext context_;
  int calls_ = 0;
};

TEST_P(ReconcileTest, CountsAddUpIfAllRowsArrive) {
  Extract("Person");
  Extract("Site");
  Load("people");
  Load("sites");
  const Json expected{{"extracted", 5}, {"unreadable", 0}, {"staged", 5},      {"read", 5},
                      {"loaded", 4},    {"rejected", 1},   {"foreign_keys", 1}};
  EXPECT_EQ(Succeed(Reconcile()), expected);
  // Rows that existed before count as loaded.
  Load("people");
  Load("sites");
  EXPECT_EQ(Succeed(Reconcile()), expected);
}

TEST_P(ReconcileTest, RowsDroppedByTheTargetAreReported) {
  Change(sqlite()
             ? "CREATE TRIGGER t BEFORE INSERT ON cont_people WHEN NEW.id = '1' BEGIN SELECT "
               "RAISE(IGNORE); END"
             : "CREATE FUNCTION cont.f() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN IF NEW.id "
               "= '1' THEN RETURN NULL; END IF; RETURN NEW; END$$; CREATE TRIGGER t BEFORE "
               "INSERT ON cont.people FOR EACH ROW EXECUTE FUNCTION cont.f()");
  Extract("Person");
  Load("people");
  const states::TaskFailure failure = Fail();
  EXPECT_EQ(failure.error, "Reconcile.Mismatch");
  EXPECT_TRUE(failure.cause.starts_with(
      "rank 600: rows are missing: load-people: 3 rows were selected, 1 were loaded and 1 "
      "rejected: "
      "the target dropped some; " +
      Table("people") +
      ": 3 rows of Person are staged, 1 were loaded and 1 rejected by load-people"))
      << failure.cause;
}

TEST_P(ReconcileTest, RowsLostByAScriptAreReported) {
  folder_.Write("people.sql", "SELECT Id AS id, Name AS name FROM Person WHERE Id <> 2;");
  Extract("Person");
  Load("people");
  EXPECT_NE(Fail().cause.find("3 rows of Person are staged, 2 were loaded and 0 rejected"),
            std::string::npos);
}

TEST_P(ReconcileTest, RowsMissingInTheStagingFileAreReported) {
  Extract("Person");
  Extract("Site");
  std::ofstream(folder_.path() + "/staging/Site.jsonl", std::ios::trunc) << "";
  EXPECT_NE(Fail().cause.find("Site: 2 rows were extracted, 0 are staged"), std::string::npos);
  std::filesystem::remove(folder_.path() + "/staging/Site.manifest.json");
  EXPECT_NE(Fail().cause.find("Site: 2 rows were extracted, none are staged"), std::string::npos);
}

TEST_P(ReconcileTest, ObjectStagedAgainAfterAScriptReadItIsReported) {
  Extract("Person");
  Load("people");
  folder_.Write("data/Person.csv", "Id,Name\n1,Ada\n2,Bo\n3,\n4,Cy\n");
  Extract("Person");
  const states::TaskFailure failure = Fail();
  EXPECT_EQ(failure.error, "Reconcile.Mismatch");
  EXPECT_NE(
      failure.cause.find("load-people: 3 rows of Person were staged when it ran, 4 are staged"),
      std::string::npos)
      << failure.cause;
  Load("people");
  EXPECT_EQ(Succeed(Reconcile())["loaded"], 3);
}

TEST_P(ReconcileTest, OrphanIsReportedWithTheRankThatLoadsItsParent) {
  Extract("Person");
  Extract("Site");
  Load("people");
  Load("sites");
  // As a load with foreign keys disabled does.
  Change(sqlite()
             ? "PRAGMA foreign_keys = OFF; DELETE FROM cont_people WHERE id = '2'"
             : "SET session_replication_role = replica; DELETE FROM cont.people WHERE id = '2'");
  const states::TaskFailure failure = Fail();
  EXPECT_EQ(failure.error, "Reconcile.ForeignKey");
  EXPECT_TRUE(failure.cause.starts_with("rank 600: foreign key violated: 1 row of " +
                                        Table("sites") + " refers to a parent missing from " +
                                        Table("people") +
                                        ": owner = '2': rank 500 loads cont.people"))
      << failure.cause;
  EXPECT_NE(failure.cause.find("check the ranks that this one needs"), std::string::npos);
}

TEST_P(ReconcileTest, ARankThatOnlyExtractsIsReconciled) {
  Extract("Person");
  const Json counts = Succeed(Call(*reconcile_, "muster:reconcile",
                                   {{"rank", 600},
                                    {"staging", folder_.path() + "/staging"},
                                    {"target", target_},
                                    {"extracted", extracted_},
                                    {"scripts", Json::object()}}));
  EXPECT_EQ(counts["staged"], 3);
  EXPECT_EQ(counts["loaded"], 0);
}

TEST_P(ReconcileTest, TasksThatHaveFailedAreLeftOut) {
  Extract("Person");
  Load("people");
  extracted_["Site"] = {{"Error", "Copy.NotFound"}, {"Cause", "gone"}};
  transformed_["load-sites"] = {{"Error", "Transform.NotFound"}, {"Cause", "gone"}};
  EXPECT_EQ(Succeed(Reconcile())["staged"], 3);
}

INSTANTIATE_TEST_SUITE_P(Targets, ReconcileTest, ::testing::Values("Sqlite", "Postgres"),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace muster::task
