#include "task/call/sql_executor.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "core/json.h"
#include "sql/sqlite.h"
#include "support/temporary_folder.h"
#include "task/call/sql_call.h"
#include "task/data/sqlite_fence.h"
#include "task/test_context.h"

namespace muster::task {
namespace {

LoadFence FirstTry() {
  SqlCall call;
  call.token = "run:/:1:0";
  return FenceOf(call);
}

class SqlExecutorTest : public ::testing::Test {
 protected:
  SqlExecutorTest() {
    folder_.Write("t.db", "");
    Run({{"Execute", "CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT, price REAL, raw BLOB)"}});
  }

  states::TaskOutcome Start(Json input, const std::string& token) {
    if (!input.contains("Database")) input["Database"] = "sqlite:" + folder_.path() + "/t.db";
    return executor_->Start({.resource = "muster:sql",
                             .input = std::move(input),
                             .credentials = {},
                             .token = token,
                             .execution = "run",
                             .state = "S"},
                            context_);
  }
  // A separate call each time, unless it has a token.
  Json Run(const Json& input, std::string token = {}) {
    if (token.empty()) token = "call " + std::to_string(++calls_);
    const auto outcome = Start(input, token);
    if (const auto* failure = std::get_if<states::TaskFailure>(&outcome)) {
      ADD_FAILURE() << failure->error << ": " << failure->cause;
      return {};
    }
    return std::get<states::TaskSuccess>(outcome).output;
  }
  std::string ErrorName(const Json& input) {
    const auto outcome = Start(input, "failing " + std::to_string(++calls_));
    const auto* failure = std::get_if<states::TaskFailure>(&outcome);
    return failure == nullptr ? "no error" : failure->error;
  }

  int calls_ = 0;
  const testing::TemporaryFolder folder_;
  std::unique_ptr<states::TaskExecutor> executor_ = MakeSqlExecutor();
  TestContext context_;
};

TEST_F(SqlExecutorTest, RowsGoInAndComeOut) {
  EXPECT_EQ(Run({{"Execute", "INSERT INTO t VALUES (?1, ?2, ?3, x'00ff'), (2, NULL, 0.5, NULL)"},
                 {"Parameters", {1, "O'Brien", 2.25}}}),
            Json::parse(R"({"RowCount":2})"));
  EXPECT_EQ(Run({{"Query", "SELECT * FROM t WHERE id <= ?1 ORDER BY id"}, {"Parameters", {9}}}),
            Json::parse(R"({"Rows":[{"id":1,"name":"O'Brien","price":2.25,"raw":"AP8="},
                            {"id":2,"name":null,"price":0.5,"raw":null}],"RowCount":2})"));
}

TEST_F(SqlExecutorTest, ARepeatedCallHappensOnce) {
  const Json insert = {{"Execute", "INSERT INTO t (name) VALUES ('x'), ('y')"}};
  EXPECT_EQ(Run(insert, "the same"), Json::parse(R"({"RowCount":2})"));
  EXPECT_EQ(Run(insert, "the same"), Json::parse(R"({"RowCount":2})"));
  EXPECT_EQ(Run({{"Query", "SELECT count(*) AS n FROM t"}})["Rows"][0]["n"], 2);
}

// What the first try has committed although its process did not learn of it.
TEST_F(SqlExecutorTest, ARetryReturnsWhatAnEarlierTryHasCommitted) {
  const Json insert = {{"Execute", "INSERT INTO t (name) VALUES ('x'), ('y')"}};
  EXPECT_EQ(Run(insert, "run:/:1:0"), Json::parse(R"({"RowCount":2})"));
  EXPECT_EQ(Run(insert, "run:/:1:1"), Json::parse(R"({"RowCount":2})"));
  EXPECT_EQ(Run({{"Query", "SELECT count(*) AS n FROM t"}})["Rows"][0]["n"], 2);
  Run(insert, "run:/:2:0");
  EXPECT_EQ(Run({{"Query", "SELECT count(*) AS n FROM t"}})["Rows"][0]["n"], 4);
}

TEST_F(SqlExecutorTest, ADelayedTryCanNoLongerCommit) {
  SqliteFence old(FirstTry());
  auto db = *sql::SqliteDb::Open(folder_.path() + "/t.db", sql::SqliteDb::Mode::kExisting,
                                 std::chrono::milliseconds(5'000));
  ASSERT_FALSE(*old.Take(*db));
  Run({{"Execute", "INSERT INTO t (name) VALUES ('x')"}}, "run:/:1:1");
  EXPECT_EQ(old.Check(*db).error().code, Code::kLeaseLost);
}

TEST_F(SqlExecutorTest, AFailedCallLeavesNothingAndMayBeRepeated) {
  Run({{"Execute", "INSERT INTO t (id) VALUES (2)"}});
  EXPECT_NE(ErrorName({{"Execute", "INSERT INTO t (id) VALUES (1), (2)"}}), "no error");
  EXPECT_EQ(Run({{"Query", "SELECT count(*) AS n FROM t"}})["Rows"][0]["n"], 1);
}

TEST_F(SqlExecutorTest, AQueryOnlyReads) {
  EXPECT_NE(ErrorName({{"Query", "DELETE FROM t"}}), "no error");
}

TEST_F(SqlExecutorTest, TooManyRowsAreAFailure) {
  EXPECT_EQ(ErrorName({{"Query",
                        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n "
                        "LIMIT 10001) SELECT i FROM n"}}),
            "States.DataLimitExceeded");
}

TEST_F(SqlExecutorTest, WrongParametersAreRefused) {
  for (const char* input :
       {R"({})", R"({"Query":"SELECT 1","Execute":"SELECT 1"})", R"({"Query":1})",
        R"({"Query":"SELECT 1","Parameters":{}})", R"({"Query":"SELECT 1","Limit":1})"}) {
    EXPECT_EQ(ErrorName(Json::parse(input)), "States.Runtime") << input;
  }
  EXPECT_EQ(ErrorName({{"Query", "SELECT 1"}, {"Database", "mysql://h/d"}}), "States.Runtime");
  EXPECT_EQ(ErrorName({{"Query", "SELEKT 1"}}), "Sql.Invalid");
}

// Unversioned tables lack the column `format`.
TEST_F(SqlExecutorTest, AnOlderVersionsTableOfCallsIsUsedAndANewerOnesRefused) {
  const auto replace = [&](const std::string& more) {
    auto db = *sql::SqliteDb::Open(folder_.path() + "/t.db", sql::SqliteDb::Mode::kExisting,
                                   std::chrono::milliseconds(5'000));
    ASSERT_TRUE(
        db->Execute("DROP TABLE IF EXISTS muster_task; CREATE TABLE muster_task (token "
                    "TEXT PRIMARY KEY, changed INTEGER NOT NULL" +
                    more + ")"));
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
