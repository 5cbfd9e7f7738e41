#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>

#include "core/json.h"
#include "sql/sqlite.h"
#include "support/postgres_server.h"
#include "support/temporary_folder.h"
#include "task/data/copy_executor.h"
#include "task/data/transform_executor.h"
#include "task/test_context.h"

// The data, the scripts and the schema of examples/simpplr, without its plan: all generated data is
// staged and loaded, on both databases, and nothing is lost.
// MUSTER_SIMPPLR_SCALE sets the amount; 1 is a tenant of a million records.
namespace muster {
namespace {

struct Script {
  const char* name;
  const char* schema;
  const char* table;
  const char* object;  // of which each row is loaded or rejected
};

// In the order of their ranks.
constexpr Script kScripts[] = {
    {"identity-people-categories", "identity", "people_categories", "Simpplr__People_Category__c"},
    {"ps-segments", "ps", "segments", "Simpplr__Segment__c"},
    {"identity-segments", "identity", "segment_members", "Simpplr__Audience_Member__c"},
    {"identity-people", "identity", "people", "Simpplr__People__c"},
    {"ps-app-config", "ps", "app_config", "Simpplr__App_Config__c"},
    {"ps-app-default", "ps", "app_default", "Simpplr__App_Default__c"},
    {"ps-ff-sync", "ps", "feature_flags", "sfLma__License__c"},
    {"identity-expertise", "identity", "expertise", "Simpplr__People_Expertise__c"},
    {"ps-notifications", "ps", "notification_settings", "Simpplr__Notification_Setting__c"},
    {"cont-folders", "cont", "folders", "Simpplr__Folder__c"},
    {"cont-topics", "cont", "topics", "Simpplr__Topic__c"},
    {"cont-sites", "cont", "sites", "Simpplr__Site__c"},
    {"nv-category", "nv", "categories", "Simpplr__Navigation_Category__c"},
    {"cont-pages", "cont", "pages", "Simpplr__Page__c"},
    {"cont-events", "cont", "events", "Simpplr__Event__c"},
    {"feed-feed-posts", "feed", "posts", "Simpplr__Feed_Item__c"},
    {"qna-question", "qna", "questions", "Simpplr__Question__c"},
    {"feed-comments", "feed", "comments", "Simpplr__Feed_Item_Comment__c"},
    {"qna-answer", "qna", "answers", "Simpplr__Answer__c"},
    {"feed-reactions", "feed", "reactions", "Simpplr__Reaction__c"},
};

class SimpplrData : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    const std::string folder = MUSTER_SIMPPLR;
    const bool sqlite = GetParam() == "Sqlite";
    std::ifstream file(folder + (sqlite ? "/schema/sqlite.sql" : "/schema/postgresql.sql"));
    const std::string schema{std::istreambuf_iterator<char>(file), {}};
    if (sqlite) {
      database_ = *sql::SqliteDb::Open(folder_.At("zeus.db"), sql::SqliteDb::Mode::kCreate,
                                       std::chrono::milliseconds(5000));
      ASSERT_TRUE(database_->Execute(schema));
      target_ = "sqlite:" + folder_.path() + "/zeus.db";
    } else {
      const std::string missing = testing::PostgresServer::Unavailable();
      if (!missing.empty()) GTEST_SKIP() << "PostgreSQL: " << missing;
      server_ = &testing::PostgresServer::Shared();
      server_->Clear();
      server_->Exec(schema);
      target_ = server_->Url();
    }
  }

  void Generate(const std::string& options) {
    const char* scale = std::getenv("MUSTER_SIMPPLR_SCALE");
    const std::string command = std::string(MUSTER_SIMPPLR) + "/generate " + options + " --scale " +
                                (scale != nullptr ? scale : "0.01") + " " + folder_.path() +
                                "/data";
    ASSERT_EQ(std::system(command.c_str()), 0) << command;
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

  // How many rows of each object are staged.
  std::map<std::string, int64_t> StageAll(const std::string& format) {
    std::map<std::string, int64_t> rows;
    const auto copy = task::MakeCopyExecutor();
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path() + "/data")) {
      const std::string object = entry.path().stem().string();
      const auto outcome = Call(*copy, "muster:copy",
                                Json{{"source", "csv:" + folder_.path() + "/data"},
                                     {"object", object},
                                     {"staging", folder_.path() + "/staging"},
                                     {"format", format}});
      EXPECT_TRUE(std::holds_alternative<states::TaskSuccess>(outcome)) << object;
      const Json& result = std::get<states::TaskSuccess>(outcome).output;
      EXPECT_EQ(result["failed"], 0) << object;
      rows[object] = result["rows"];
    }
    return rows;
  }

  states::TaskOutcome Load(const Script& script) {
    return Call(*transform_, "muster:transform",
                Json{{"script", std::string("scripts/") + script.name + ".sql"},
                     {"plan_folder", MUSTER_SIMPPLR},
                     {"staging", folder_.path() + "/staging"},
                     {"target", target_},
                     {"arguments",
                      {{"TENANT_ID", "acme"},
                       {"ENTITY_NAME", script.name},
                       {"TARGET_SCHEMA", script.schema},
                       {"TARGET_TABLE", script.table}}}});
  }

  int64_t Ask(const std::string& sql) {
    if (database_) return *database_->QueryInt(sql);
    return std::stoll(server_->Exec(sql));
  }

  // Loads everything; every row of every script's object is loaded or rejected, and in the target.
  void LoadAll(const std::map<std::string, int64_t>& staged) {
    for (const Script& script : kScripts) {
      const auto outcome = Load(script);
      if (const auto* failure = std::get_if<states::TaskFailure>(&outcome)) {
        FAIL() << script.name << ": " << failure->error << ": " << failure->cause;
      }
      const Json& result = std::get<states::TaskSuccess>(outcome).output;
      EXPECT_EQ(result["read"], staged.at(script.object)) << script.name;
      for (const auto& [table, rows] : result["tables"].items()) {
        EXPECT_EQ(Ask("SELECT count(*) FROM " + table), rows) << table;
      }
    }
  }

  testing::TemporaryFolder folder_;
  std::unique_ptr<sql::SqliteDb> database_;
  testing::PostgresServer* server_ = nullptr;
  std::string target_;
  std::unique_ptr<states::TaskExecutor> transform_ = task::MakeTransformExecutor();
  task::TestContext context_;
  int calls_ = 0;
};

TEST_P(SimpplrData, EverythingIsLoadedAndARepeatChangesNothing) {
  Generate("");
  const auto staged = StageAll("jsonl");
  EXPECT_EQ(staged.size(), 33u);
  LoadAll(staged);
  LoadAll(StageAll("parquet"));
}

TEST_P(SimpplrData, OrphanIsFoundByTheScriptThatLoadsIt) {
  Generate("--orphans Simpplr__Feed_Item_Comment__c");
  StageAll("jsonl");
  for (const Script& script : kScripts) {
    const auto outcome = Load(script);
    const auto* failure = std::get_if<states::TaskFailure>(&outcome);
    const bool orphaned = script.name == std::string("feed-comments");
    ASSERT_EQ(failure != nullptr, orphaned) << script.name;
    if (!orphaned) continue;
    EXPECT_EQ(failure->error, "Transform.ForeignKey") << failure->cause;
    EXPECT_NE(failure->cause.find("posts"), std::string::npos) << failure->cause;
    EXPECT_NE(failure->cause.find("x99000000000000000"), std::string::npos) << failure->cause;
    return;
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, SimpplrData, ::testing::Values("Sqlite", "Postgres"),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace muster
