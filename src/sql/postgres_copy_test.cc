#include "sql/postgres_copy.h"

#include <gtest/gtest.h>

#include "support/fault_proxy.h"
#include "support/postgres_test.h"

namespace muster::sql {
namespace {

using testing::FaultProxy;

class PgCopyTest : public testing::PostgresTest {
 protected:
  void SetUp() override {
    PostgresTest::SetUp();
    if (IsSkipped()) return;
    server_->Exec("CREATE TABLE t (id integer PRIMARY KEY, name text)");
  }

  static std::unique_ptr<PgConnection> Connect() { return Connect(server_->Url()); }
  static std::unique_ptr<PgConnection> Connect(const std::string& url) {
    return PgConnection::Open({.uri = url}).value();
  }
  static Status Run(PgConnection& connection, const std::string& sql) {
    auto done = connection.Execute(PgStatement{"", sql}, PgParams());
    if (!done) return done.error();
    return {};
  }
};

constexpr const char* kCopy = "BEGIN; SELECT 41 + 1; COPY t FROM STDIN";

TEST_F(PgCopyTest, RowsAreSentAfterTheResultsOfEarlierStatements) {
  auto connection = Connect();
  auto copy = PgCopyIn::Start(*connection, kCopy).value();
  auto answers = copy.Ready().value();
  ASSERT_EQ(answers.size(), 2);
  EXPECT_EQ(answers[1].Text(0, 0), "42");
  ASSERT_TRUE(copy.Send("1\tone\n2\t"));
  ASSERT_TRUE(copy.Send("two\n"));
  EXPECT_FALSE(copy.End().value());
  EXPECT_EQ(server_->Exec("SELECT count(*) FROM t"), "0");
  ASSERT_TRUE(Run(*connection, "COMMIT"));
  EXPECT_EQ(server_->Exec("SELECT string_agg(name, ',' ORDER BY id) FROM t"), "one,two");
}

TEST_F(PgCopyTest, RefusedRowHasItsLineAndTheTransactionContinuesFromItsSavepoint) {
  auto connection = Connect();
  auto copy = PgCopyIn::Start(*connection, "BEGIN; SAVEPOINT s; COPY t FROM STDIN").value();
  ASSERT_TRUE(copy.Ready());
  ASSERT_TRUE(copy.Send("1\tone\nzwei\ttwo\n3\tthree\n"));
  const auto refusal = copy.End().value();
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->line, 2);
  EXPECT_EQ(refusal->sqlstate, "22P02");
  EXPECT_NE(refusal->message.find("\"zwei\", column id"), std::string::npos) << refusal->message;

  auto again = PgCopyIn::Start(*connection, "ROLLBACK TO s; COPY t FROM STDIN").value();
  ASSERT_TRUE(again.Ready());
  ASSERT_TRUE(again.Send("1\tone\n"));
  EXPECT_FALSE(again.End().value());
  ASSERT_TRUE(Run(*connection, "COMMIT"));
  EXPECT_EQ(server_->Exec("SELECT count(*) FROM t"), "1");
}

TEST_F(PgCopyTest, FailedStatementBeforeTheRowsHasTheServersErrorAndKeepsTheConnection) {
  auto connection = Connect();
  auto copy = PgCopyIn::Start(*connection, "BEGIN; COPY nowhere FROM STDIN").value();
  const auto ready = copy.Ready();
  ASSERT_FALSE(ready);
  EXPECT_EQ(ready.error().code, Code::kNotFound) << ready.error().ToString();
  EXPECT_FALSE(connection->lost());
  ASSERT_TRUE(Run(*connection, "ROLLBACK"));
}

TEST_F(PgCopyTest, AbandonedCopyLeavesNothing) {
  auto connection = Connect();
  auto copy = PgCopyIn::Start(*connection, kCopy).value();
  ASSERT_TRUE(copy.Ready());
  ASSERT_TRUE(copy.Send("1\tone\n"));
  ASSERT_TRUE(copy.Abandon("changed my mind"));
  ASSERT_TRUE(Run(*connection, "ROLLBACK"));
  EXPECT_EQ(server_->Exec("SELECT count(*) FROM t"), "0");
}

TEST_F(PgCopyTest, ConnectionLossIsUnavailableBeforeTheCommitAndUnknownDuringIt) {
  FaultProxy proxy(server_->port());
  const std::string url = server_->Url(proxy.port());
  auto connection = Connect(url);
  auto copy = PgCopyIn::Start(*connection, kCopy).value();
  ASSERT_TRUE(copy.Ready());
  ASSERT_TRUE(copy.Send("1\tone\n"));
  proxy.CutReplyAfter(0);
  const auto end = copy.End();
  ASSERT_FALSE(end);
  EXPECT_EQ(end.error().code, Code::kUnavailable) << end.error().ToString();
  EXPECT_TRUE(connection->lost());

  connection = Connect(url);
  auto second = PgCopyIn::Start(*connection, kCopy).value();
  ASSERT_TRUE(second.Ready());
  ASSERT_TRUE(second.Send("2\ttwo\n"));
  ASSERT_FALSE(second.End().value());
  proxy.CutReplyAfter(0);
  const Status commit = Run(*connection, "COMMIT");
  ASSERT_FALSE(commit);
  EXPECT_EQ(commit.error().code, Code::kUnknownOutcome) << commit.error().ToString();
  EXPECT_EQ(server_->Exec("SELECT string_agg(name, ',') FROM t"), "two");
}

TEST_F(PgCopyTest, RowsAreReadOneByOneAndTheConnectionIsFreeAfterTheLast) {
  server_->Exec("INSERT INTO t SELECT i, 'n' || i FROM generate_series(1, 1000) i");
  auto connection = Connect();
  auto copy = PgCopyOut::Start(*connection, "COPY (SELECT * FROM t ORDER BY id) TO STDOUT").value();
  int rows = 0;
  while (true) {
    const auto row = copy.Next();
    ASSERT_TRUE(row) << row.error().ToString();
    if (!*row) break;
    ++rows;
    EXPECT_EQ(**row, std::to_string(rows) + "\tn" + std::to_string(rows) + "\n");
  }
  EXPECT_EQ(rows, 1000);
  EXPECT_TRUE(Run(*connection, "SELECT 1"));
}

TEST_F(PgCopyTest, QueryThatFailsHalfWayReturnsTheReason) {
  auto connection = Connect();
  auto copy = PgCopyOut::Start(
      *connection, "COPY (SELECT 100 / (50 - i) FROM generate_series(1, 100) i) TO STDOUT");
  ASSERT_TRUE(copy) << copy.error().ToString();
  auto row = copy->Next();
  while (row && *row) row = copy->Next();
  ASSERT_FALSE(row);
  EXPECT_EQ(row.error().code, Code::kInvalid) << row.error().ToString();
  EXPECT_TRUE(Run(*connection, "SELECT 1"));

  const auto bad = PgCopyOut::Start(*connection, "COPY nowhere TO STDOUT");
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().code, Code::kNotFound);
  EXPECT_TRUE(Run(*connection, "SELECT 1"));
}

}  // namespace
}  // namespace muster::sql
