// Goal: `muster:sql` behaves on PostgreSQL as on SQLite. Method: a separate database.

#include <gtest/gtest.h>

#include "core/json.h"
#include "support/postgres_test.h"
#include "task/call/sql_call.h"
#include "task/call/sql_executor.h"
#include "task/data/postgres_fence.h"
#include "task/test_context.h"

namespace muster::task {
namespace {

LoadFence FirstTry() {
  SqlCall call;
  call.token = "run:/:1:0";
  return FenceOf(call);
}

class SqlPostgresTest : public muster::testing::PostgresTest {
 protected:
  void SetUp() override {
    PostgresTest::SetUp();
    if (IsSkipped()) return;
    server_->Exec(
        "CREATE TABLE t (id bigint PRIMARY KEY, name text, price numeric, at timestamptz, "
        "tags text[], extra jsonb)");
  }

  states::TaskOutcome Start(Json input, const std::string& token, std::string database = {}) {
    input["Database"] = database.empty() ? server_->Url() : std::move(database);
    return MakeSqlExecutor()->Start({.resource = "muster:sql",
                                     .input = std::move(input),
                                     .credentials = {},
                                     .token = token,
                                     .execution = "run",
                                     .state = "S"},
                                    context_);
  }
  Json Run(const Json& input, std::string token = {}) {
    if (token.empty()) token = "call " + std::to_string(++calls_);
    const auto outcome = Start(input, token);
    if (const auto* failure = std::get_if<states::TaskFailure>(&outcome)) {
      ADD_FAILURE() << failure->error << ": " << failure->cause;
      return {};
    }
    return std::get<states::TaskSuccess>(outcome).output;
  }
  std::string ErrorName(const Json& input, const std::string& database = {}) {
    const auto outcome = Start(input, "failing " + std::to_string(++calls_), database);
    const auto* failure = std::get_if<states::TaskFailure>(&outcome);
    return failure == nullptr ? "no error" : failure->error;
  }

  int calls_ = 0;
  TestContext context_;
};

TEST_F(SqlPostgresTest, RowsGoInAndComeOut) {
  EXPECT_EQ(Run({{"Execute",
                  "INSERT INTO t VALUES ($1, $2, $3, '2026-01-02T03:04:05Z', '{a,b}', $4), "
                  "(2, NULL, NULL, NULL, NULL, NULL)"},
                 {"Parameters", {1, "O'Brien", 2.25, {{"k", {1, nullptr}}}}}}),
            Json::parse(R"({"RowCount":2})"));
  EXPECT_EQ(
      Run({{"Query", "SELECT id, name, price, tags, extra FROM t WHERE id <= $1 ORDER BY id; "},
           {"Parameters", {9}}}),
      Json::parse(R"({"Rows":[
              {"id":1,"name":"O'Brien","price":2.25,"tags":["a","b"],"extra":{"k":[1,null]}},
              {"id":2,"name":null,"price":null,"tags":null,"extra":null}],"RowCount":2})"));
}

TEST_F(SqlPostgresTest, ARepeatedCallHappensOnce) {
  const Json insert = {{"Execute", "INSERT INTO t (id) SELECT generate_series(1, 3)"}};
  EXPECT_EQ(Run(insert, "the same"), Json::parse(R"({"RowCount":3})"));
  EXPECT_EQ(Run(insert, "the same"), Json::parse(R"({"RowCount":3})"));
  EXPECT_EQ(server_->Exec("SELECT count(*) FROM t"), "3");
}

TEST_F(SqlPostgresTest, ARetryReturnsWhatAnEarlierTryHasCommitted) {
  const Json insert = {{"Execute", "INSERT INTO t (id) SELECT generate_series(1, 3)"}};
  EXPECT_EQ(Run(insert, "run:/:1:0"), Json::parse(R"({"RowCount":3})"));
  EXPECT_EQ(Run(insert, "run:/:1:1"), Json::parse(R"({"RowCount":3})"));
  EXPECT_EQ(server_->Exec("SELECT count(*) FROM t"), "3");
}

// A process that was suspended in the middle of its transaction.
TEST_F(SqlPostgresTest, ADelayedTryCanNoLongerCommit) {
  const auto session = *sql::PgConnection::Open({.uri = server_->Url()});
  const auto say = [&](const char* sql) {
    return session->Execute({.name = "", .sql = sql, .writes = false}, sql::PgParams());
  };
  PostgresFence old(FirstTry(), RealEnv(), {});
  ASSERT_FALSE(*old.Take(*session, {}));
  ASSERT_TRUE(say("BEGIN"));
  ASSERT_TRUE(old.Lock(*session));
  ASSERT_TRUE(say("INSERT INTO t (id) VALUES (1)"));
  EXPECT_EQ(Run({{"Execute", "INSERT INTO t (id) VALUES (2)"}}, "run:/:1:1"),
            Json::parse(R"({"RowCount":1})"));
  EXPECT_FALSE(old.Commit(*session, "1"));
  EXPECT_EQ(server_->Exec("SELECT string_agg(id::text, ',') FROM t"), "2");

  const auto late = *sql::PgConnection::Open({.uri = server_->Url()});
  EXPECT_EQ(old.Lock(*late).error().code, Code::kLeaseLost);
}

TEST_F(SqlPostgresTest, AFailedCallLeavesNothingAndMayBeRepeated) {
  Run({{"Execute", "INSERT INTO t (id) VALUES (2)"}});
  const Json insert = {{"Execute", "INSERT INTO t (id) VALUES (1), (2)"}};
  const auto failed = Start(insert, "again");
  ASSERT_TRUE(std::holds_alternative<states::TaskFailure>(failed));
  EXPECT_NE(std::get<states::TaskFailure>(failed).cause.find("duplicate key"), std::string::npos)
      << std::get<states::TaskFailure>(failed).cause;
  server_->Exec("DELETE FROM t");
  EXPECT_EQ(Run(insert, "again"), Json::parse(R"({"RowCount":2})"));
}

TEST_F(SqlPostgresTest, AQueryOnlyReads) {
  Run({{"Execute", "INSERT INTO t (id) VALUES (1)"}});
  EXPECT_NE(ErrorName({{"Query", "DELETE FROM t RETURNING id"}}), "no error");
  EXPECT_EQ(ErrorName({{"Execute", "SELEKT 1"}}), "Sql.Invalid");
  EXPECT_EQ(ErrorName({{"Query", "SELECT nothing FROM t WHERE id = $1"}, {"Parameters", {1}}}),
            "Sql.Invalid");
  EXPECT_EQ(server_->Exec("SELECT count(*) FROM t"), "1");
}

TEST_F(SqlPostgresTest, TooManyRowsAreAFailure) {
  EXPECT_EQ(ErrorName({{"Query", "SELECT generate_series(1, 10001) AS i"}}),
            "States.DataLimitExceeded");
}

TEST_F(SqlPostgresTest, UnreachableServerIsUnavailable) {
  EXPECT_EQ(ErrorName({{"Query", "SELECT 1 AS one"}}, "postgresql://muster@127.0.0.1:1/muster"),
            "Sql.Unavailable");
}

// Unversioned tables lack the column `format`.
TEST_F(SqlPostgresTest, AnOlderVersionsTableOfCallsIsUsedAndANewerOnesRefused) {
  const auto replace = [&](const std::string& more) {
    server_->Exec("SET client_min_messages = error; DROP TABLE IF EXISTS muster_task");
    server_->Exec("CREATE TABLE muster_task (token text PRIMARY KEY, changed bigint NOT NULL" +
                  more + ")");
  };
  replace("");
  const Json insert = {{"Execute", "INSERT INTO t (id) VALUES (1)"}};
  EXPECT_EQ(Run(insert, "old"), Run(insert, "old"));
  replace(", format integer NOT NULL DEFAULT 2");
  const auto refused = Start({{"Execute", "INSERT INTO t (id) VALUES (2)"}}, "new");
  const auto* failure = std::get_if<states::TaskFailure>(&refused);
  ASSERT_NE(failure, nullptr);
  EXPECT_NE(failure->cause.find("table muster_task has schema version 2"), std::string::npos)
      << failure->cause;
}

}  // namespace
}  // namespace muster::task
