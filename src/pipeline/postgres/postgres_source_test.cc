#include "pipeline/postgres/postgres_source.h"

#include <gtest/gtest.h>

#include "core/json.h"
#include "muster/migrate.h"
#include "support/fault_proxy.h"
#include "support/postgres_test.h"
#include "support/shared_server.h"

// PostgreSQL specifics: types, snapshots, lost connections. The general source contract is in
// tests/contract.

namespace muster::pipeline {
namespace {

using testing::FaultProxy;

class PostgresSourceTest : public testing::PostgresTest {
 protected:
  static std::unique_ptr<Source> OpenAt(const std::string& url) {
    auto source = OpenSource(url, RealEnv());
    EXPECT_TRUE(source) << source.error().ToString();
    return source ? *std::move(source) : nullptr;
  }
  static std::unique_ptr<Source> Open(const std::string& rest = "#t") {
    return OpenAt(server_->Url() + rest);
  }

  struct Row {
    std::string id;
    std::string body;
  };
  static std::vector<Row> ReadAll(Source& source, const std::string& collection = "t") {
    std::vector<Row> rows;
    auto partitions = source.Partitions(collection);
    EXPECT_TRUE(partitions) << partitions.error().ToString();
    if (!partitions) return rows;
    for (const Partition& partition : *partitions) {
      auto reader = source.Read(partition, "", {}).value();
      while (true) {
        const auto next = reader->Next();
        EXPECT_TRUE(next) << next.error().ToString();
        if (!next || !*next) break;
        rows.push_back({std::string((*next)->id), std::string((*next)->body)});
      }
    }
    return rows;
  }
  // Writes all rows of table `t`; none may be refused.
  static void Copy(Source& source, Sink& sink) {
    Fence fence;
    fence.item = "t__0__0";
    auto writer = sink.Open("t", fence).value();
    Batch batch;
    auto reader = source.Read(source.Partitions("t").value().front(), "", {}).value();
    while (auto next = reader->Next().value()) batch.Add(*next);
    const auto refused = writer->Write(batch, {}, {});
    ASSERT_TRUE(refused) << refused.error().ToString();
    EXPECT_TRUE(refused->empty()) << refused->front().reason;
  }
  static Error PartitionsError(Source& source, const std::string& collection = "t") {
    const auto partitions = source.Partitions(collection);
    EXPECT_FALSE(partitions);
    return partitions ? Error{} : partitions.error();
  }
};

TEST_F(PostgresSourceTest, MustersTablesAreNotListed) {
  server_->Exec(
      "CREATE TABLE t (id bigint PRIMARY KEY); CREATE TABLE muster_transform (task text PRIMARY "
      "KEY);"
      "CREATE TABLE muster_task (token text PRIMARY KEY)");
  const auto source = Open("");
  const auto collections = source->Collections().value();
  ASSERT_EQ(collections.size(), 1u);
  EXPECT_EQ(collections[0].name, "t");
  const auto unlisted = source->Unlisted().value();
  ASSERT_EQ(unlisted.size(), 2u);
  EXPECT_EQ(unlisted[0].name, "muster_task");
  server_->Exec("DROP TABLE muster_transform, muster_task");
}

TEST_F(PostgresSourceTest, ValuesAreReadExactly) {
  server_->Exec(
      "CREATE TABLE t (id bigint PRIMARY KEY, n numeric, f float8, ts timestamptz, d date, a "
      "text[],"
      " j json, jb jsonb, b bytea, ok boolean, \"odd \"\"name\" text);"
      "INSERT INTO t VALUES (9223372036854775807, 1e400, 0.1, '2024-02-29 12:00:00+01', "
      "'2024-02-29',"
      " '{\"a b\",NULL}', '{ \"z\":1.0,\"a\":1e3}', '{\"n\": 1.0}', '\\xff00', true, E'tab\\tq\"');"
      "INSERT INTO t VALUES (1, 'NaN', '-Infinity')");
  auto source = Open();
  const auto rows = ReadAll(*source);
  ASSERT_EQ(rows.size(), 2);
  EXPECT_EQ(rows[0].id, "1");
  EXPECT_EQ(rows[0].body,
            R"({"id":1,"n":"NaN","f":"-Infinity","ts":null,"d":null,"a":null,"j":null,"jb":null,)"
            R"("b":null,"ok":null,"odd \"name":null})");
  EXPECT_EQ(rows[1].body,
            R"({"id":9223372036854775807,"n":1)" + std::string(400, '0') +
                R"(,"f":0.1,"ts":"2024-02-29T11:00:00+00:00","d":"2024-02-29","a":["a b",null],)"
                R"("j":{ "z":1.0,"a":1e3},"jb":{"n": 1.0},"b":"\\xff00","ok":true,)"
                R"("odd \"name":"tab\tq\""})");
  const auto metadata =
      ParseJson(source->Collections().value().front().metadata, "metadata").value();
  EXPECT_EQ(metadata["key"], Json::parse(R"(["id"])"));
  EXPECT_EQ(metadata["columns"][3], Json::parse(R"({"name":"ts","type":"timestamp with time zone",
      "nullable":true})"));
}

TEST_F(PostgresSourceTest, RowsSurviveARoundTrip) {
  server_->Exec(
      "CREATE TYPE mood AS ENUM ('good'); CREATE DOMAIN small AS int CHECK (VALUE < 10);"
      "CREATE TABLE t (a int, b text, n numeric(30,10), f float8, ts timestamptz, iv interval,"
      " arr int[], j json, jb jsonb, by bytea, ok bool, m mood, s small, u uuid, PRIMARY KEY (b, "
      "a));"
      "INSERT INTO t SELECT i, E'\\\\ \\t \"' || i, i / 3.0, i / 7.0, now() + i * interval '1 day',"
      " i * interval '1.5 hours', ARRAY[i, NULL], '{\"k\": 1.0}', '[1, null]', decode('00ff', "
      "'hex'),"
      " i % 2 = 0, 'good', 5, gen_random_uuid() FROM generate_series(1, 500) i");
  auto source = Open();
  server_->Exec("CREATE SCHEMA copy");
  auto sink = OpenSink(server_->Url() + "?schema=copy#t", RealEnv()).value();
  ASSERT_TRUE(sink->Prepare(source->Collections().value().front(), false));
  Copy(*source, *sink);
  EXPECT_EQ(server_->Exec("SELECT count(*) FROM t JOIN copy.t c USING (b, a) WHERE"
                          " row_to_json(t)::text = row_to_json(c)::text"),
            "500");
}

TEST_F(PostgresSourceTest, JsonNullAndSqlNullStayDistinct) {
  const std::string columns = " (id int PRIMARY KEY, a jsonb, t text, b jsonb, \"c c\" json";
  server_->Exec(
      "CREATE TABLE t" + columns +
      ");"
      "INSERT INTO t VALUES (1, 'null', NULL, NULL, '[1.0]'), (2, NULL, 'x', 'null', NULL),"
      " (3, NULL, NULL, NULL, NULL), (4, 'null', NULL, 'null', 'null'),"
      " (5, '{\"x\": null}', NULL, '\"null\"', NULL)");
  server_->Exec("CREATE SCHEMA copy; CREATE TABLE copy.t" + columns + " DEFAULT '{}')");
  auto source = Open();
  const auto rows = ReadAll(*source);
  EXPECT_EQ(rows[2].body, R"({"id":3,"a":null,"t":null,"b":null,"c c":null})");
  auto sink = OpenSink(server_->Url() + "?schema=copy#t", RealEnv()).value();
  Copy(*source, *sink);
  EXPECT_EQ(server_->Exec("SELECT count(*) FROM t JOIN copy.t u USING (id) WHERE"
                          " (t.a, t.b, t.\"c c\"::text, t.t)"
                          " IS NOT DISTINCT FROM (u.a, u.b, u.\"c c\"::text, u.t)"),
            "5");
}

TEST_F(PostgresSourceTest, AllPartitionsAreFromOneSnapshot) {
  server_->Exec(
      "CREATE TABLE t (id int PRIMARY KEY); CREATE TABLE u (id int PRIMARY KEY);"
      "INSERT INTO t VALUES (1); INSERT INTO u VALUES (1)");
  auto source = Open("");
  ASSERT_EQ(source->Collections().value().size(), 2);
  server_->Exec("INSERT INTO t VALUES (2); DELETE FROM u");
  EXPECT_EQ(ReadAll(*source, "t").size(), 1);
  EXPECT_EQ(ReadAll(*source, "u").size(), 1);
  EXPECT_EQ(ReadAll(*Open(""), "t").size(), 2);
}

TEST_F(PostgresSourceTest, ReadingContinuesAfterALostConnection) {
  server_->Exec(
      "CREATE TABLE t (id int PRIMARY KEY, filler text);"
      "INSERT INTO t SELECT i, repeat('x', 1000) FROM generate_series(1, 5000) i");
  FaultProxy proxy(server_->port());
  auto source = OpenAt(server_->Url(proxy.port()) + "#t");
  const auto partitions = source->Partitions("t").value();
  auto reader = source->Read(partitions.front(), "", {}).value();
  int read = 0;
  while (true) {
    if (read % 2000 == 1000) proxy.CutAll();
    const auto next = reader->Next();
    ASSERT_TRUE(next) << next.error().ToString();
    if (!*next) break;
    EXPECT_EQ((*next)->id, std::to_string(++read));
  }
  EXPECT_EQ(read, 5000);
}

TEST_F(PostgresSourceTest, PartitionsHaveSimilarSizesForAnyKeys) {
  server_->Exec(
      "CREATE TABLE t (id text COLLATE \"C\" PRIMARY KEY);"
      "INSERT INTO t SELECT repeat('x', i % 50) || md5(i::text) FROM generate_series(1, 5000) i");
  auto source = Open("?partitions=4#t");
  const auto partitions = source->Partitions("t").value();
  ASSERT_EQ(partitions.size(), 4);
  size_t rows = 0;
  for (const Partition& partition : partitions) {
    auto reader = source->Read(partition, "", {}).value();
    size_t read = 0;
    while (reader->Next().value()) ++read;
    EXPECT_GT(read, 5000 / 6);
    rows += read;
  }
  EXPECT_EQ(rows, 5000);
}

TEST_F(PostgresSourceTest, PartitionedTableWithoutAKeyIsReadByPartition) {
  server_->Exec(
      "CREATE TABLE t (id int) PARTITION BY RANGE (id);"
      "CREATE TABLE t1 PARTITION OF t FOR VALUES FROM (0) TO (10);"
      "CREATE TABLE \"T 2\" PARTITION OF t FOR VALUES FROM (10) TO (20);"
      "INSERT INTO t SELECT generate_series(0, 19)");
  auto source = Open("");
  EXPECT_EQ(source->Collections().value().size(), 1);
  EXPECT_EQ(source->Partitions("t").value().size(), 2);
  EXPECT_EQ(ReadAll(*source).size(), 20);
}

TEST_F(PostgresSourceTest, TableOfDocumentsReturnsThem) {
  server_->Exec(
      "CREATE TABLE t (id text PRIMARY KEY, routing text, document json);"
      "INSERT INTO t VALUES ('x', 'r', '{\"a\":1.0, \"b\":[]}')");
  const auto rows = ReadAll(*Open());
  ASSERT_EQ(rows.size(), 1);
  EXPECT_EQ(rows[0].id, "x");
  EXPECT_EQ(rows[0].body, "{\"a\":1.0, \"b\":[]}");
}

TEST_F(PostgresSourceTest, ViewsAndQueriesNeedAUniqueKey) {
  server_->Exec(
      "CREATE TABLE b (id int, n int); INSERT INTO b VALUES (1, 1), (2, 1), (3, NULL);"
      "CREATE VIEW t AS SELECT * FROM b");
  EXPECT_NE(PartitionsError(*Open()).hint.find("?key="), std::string::npos);
  EXPECT_NE(PartitionsError(*Open("?key=n#t")).message.find("not unique"), std::string::npos);
  EXPECT_NE(PartitionsError(*Open("?key=x#t")).message.find("'x'"), std::string::npos);
  EXPECT_EQ(ReadAll(*Open("?key=id#t")).size(), 3);

  const std::string query =
      "?key=id&query=SELECT%20id%20FROM%20b%20WHERE%20id%20%3E%201%20--%20end";
  EXPECT_EQ(ReadAll(*Open(query), "query").size(), 2);
  EXPECT_EQ(ReadAll(*Open(query + "#mine"), "mine").size(), 2);
  const Error wrong = PartitionsError(*Open("?key=id&query=SELEKT"), "query");
  EXPECT_NE(wrong.message.find("syntax error"), std::string::npos) << wrong.ToString();
}

TEST_F(PostgresSourceTest, RowsHiddenByAPolicyAreAnError) {
  const std::string role = testing::UniqueName("limited");
  server_->Exec(
      "CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t VALUES (1), (2);"
      "ALTER TABLE t ENABLE ROW LEVEL SECURITY; CREATE POLICY one ON t USING (id = 1);"
      "CREATE ROLE " +
      role + "; GRANT SELECT ON t TO " + role + "; GRANT USAGE ON SCHEMA public TO " + role);
  EXPECT_EQ(ReadAll(*OpenAt(server_->Url() + "#t")).size(), 2U);
  const std::string limited = server_->Url() + "?options=-c%20role%3D" + role;
  const auto hidden = OpenAt(limited + "#t");
  const auto reader = hidden->Read(hidden->Partitions("t").value().at(0), "", {});
  ASSERT_FALSE(reader);
  EXPECT_EQ(reader.error().code, Code::kPermission);
  EXPECT_NE(reader.error().message.find("row-level security"), std::string::npos)
      << reader.error().ToString();
  EXPECT_EQ(ReadAll(*OpenAt(limited + "%20-c%20row_security%3Don#t")).size(), 1U);
}

TEST_F(PostgresSourceTest, MissingTablesAndKeysAreReported) {
  const auto collections = Open("#nowhere")->Collections();
  ASSERT_FALSE(collections);
  EXPECT_EQ(collections.error().code, Code::kNotFound);
  server_->Exec("CREATE TABLE t (id int PRIMARY KEY)");
  auto source = Open();
  Partition partition = source->Partitions("t").value().front();
  const auto bad = source->Read(partition, "not a position", {});
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().code, Code::kInvalid) << bad.error().ToString();
}

}  // namespace
}  // namespace muster::pipeline
