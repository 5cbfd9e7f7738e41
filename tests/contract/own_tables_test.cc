// What Muster keeps in a database, made by its own code, is not listed by a source there.

#include <gtest/gtest.h>

#include "events/events.h"
#include "muster/pipeline.h"
#include "muster/store.h"
#include "pipeline/pipeline.h"
#include "replica/read_model.h"
#include "sql/sqlite.h"
#include "support/postgres_test.h"
#include "support/temporary_folder.h"

namespace muster {
namespace {

using Names = std::vector<std::string>;

// A store, an event log and read models.
void MakeAll(const std::string& url) {
  const auto store = store::OpenStore(url, RealEnv());
  ASSERT_TRUE(store) << store.error().ToString();
  const auto log = events::OpenEventLog(url, {.slots = 4, .create = true}, RealEnv());
  ASSERT_TRUE(log) << log.error().ToString();
  const auto model = replica::OpenReadModel(url, RealEnv());
  ASSERT_TRUE(model) << model.error().ToString();
}

Names ListedBy(pipeline::Source& source) {
  Names names;
  const auto collections = source.Collections();
  if (!collections) return {collections.error().ToString()};
  for (const auto& one : *collections) names.push_back(one.name);
  return names;
}

Names LeftOutBy(pipeline::Source& source) {
  Names names;
  const auto left_out = source.Unlisted();
  if (!left_out) return {left_out.error().ToString()};
  for (const auto& one : *left_out) names.push_back(one.name);
  return names;
}

TEST(OwnTablesInSqlite, AreLeftOutInEveryNamespace) {
  const testing::TemporaryFolder folder;
  const std::string url = "sqlite:" + folder.At("a.db");
  MakeAll(url + "?namespace=team");
  const auto db = sql::SqliteDb::Open(folder.At("a.db"), sql::SqliteDb::Mode::kExisting,
                                      std::chrono::seconds(10));
  ASSERT_TRUE(db);
  // Tables of the user with such names.
  ASSERT_TRUE(
      (*db)->Execute("CREATE TABLE x_records (kind TEXT, key TEXT PRIMARY KEY);"
                     "CREATE TABLE x_schema (version INTEGER PRIMARY KEY);"
                     "CREATE TABLE x_events (id INTEGER PRIMARY KEY);"
                     "CREATE TABLE teams (id INTEGER PRIMARY KEY)"));
  const auto source = pipeline::OpenSource(url, RealEnv()).value();
  EXPECT_EQ(ListedBy(*source), (Names{"teams", "x_events", "x_records", "x_schema"}));
  EXPECT_EQ(LeftOutBy(*source),
            (Names{"team_checkpoints", "team_checkpoints_schema", "team_event_log",
                   "team_event_log_schema", "team_events", "team_parked_events",
                   "team_parked_streams", "team_records", "team_schema"}));
  // Its name selects it.
  EXPECT_EQ(ListedBy(*pipeline::OpenSource(url + "#team_records", RealEnv()).value()),
            Names{"team_records"});
}

class OwnTablesInPostgres : public testing::PostgresTest {};

TEST_F(OwnTablesInPostgres, AreLeftOutInEveryNamespace) {
  MakeAll(server_->Url() + "?namespace=team");
  server_->Exec(
      "CREATE TABLE team.t (id bigint PRIMARY KEY);"
      "CREATE SCHEMA other; CREATE TABLE other.records (id bigint PRIMARY KEY);"
      "CREATE TABLE other.schema_version (version integer)");
  const auto team = pipeline::OpenSource(server_->Url() + "?schema=team", RealEnv()).value();
  EXPECT_EQ(ListedBy(*team), Names{"t"});
  EXPECT_EQ(LeftOutBy(*team),
            (Names{"checkpoints", "checkpoints_version", "event_log", "event_log_version", "events",
                   "parked_events", "parked_streams", "records", "schema_version"}));
  const auto other = pipeline::OpenSource(server_->Url() + "?schema=other", RealEnv()).value();
  EXPECT_EQ(ListedBy(*other), (Names{"records", "schema_version"}));
  server_->Exec("DROP SCHEMA team CASCADE; DROP SCHEMA other CASCADE");
}

}  // namespace
}  // namespace muster
