#include "pipeline/sqlite/sqlite_sink.h"

#include <gtest/gtest.h>

#include "core/json.h"
#include "muster/migrate.h"
#include "sql/sqlite.h"
#include "support/temporary_folder.h"

// Values and types, in and out. The general source and sink contracts are in tests/contract.

namespace muster::pipeline {
namespace {

using namespace std::chrono_literals;

class SqliteSinkTest : public ::testing::Test {
 protected:
  std::string File() const { return folder_.At("a file.db"); }
  std::string Url(const std::string& rest = "#t") const {
    return "sqlite:" + folder_.path() + "/a%20file.db" + rest;
  }
  std::unique_ptr<sql::SqliteDb> Db() const {
    return sql::SqliteDb::Open(File(), sql::SqliteDb::Mode::kCreate, 10s).value();
  }
  std::string Query(const std::string& sql) const {
    auto text = Db()->QueryText(sql);
    return text ? *text : text.error().ToString();
  }
  static Fence FenceOf(int64_t epoch) {
    Fence fence;
    fence.run = "r";
    fence.incarnation = "i";
    fence.item = "c__0__0";
    fence.epoch = epoch;
    return fence;
  }
  static Batch BatchOf(const std::vector<std::string>& bodies) {
    Batch batch;
    for (const std::string& body : bodies) {
      batch.Add({.id = "the id", .routing = {}, .body = body, .position = "p", .defect = {}});
    }
    return batch;
  }

  // Why each document was refused, "" if accepted.
  std::vector<std::string> WriteAll(const std::vector<std::string>& bodies) {
    auto sink = OpenSink(Url(), RealEnv()).value();
    auto writer = sink->Open("c", FenceOf(++epoch_));
    EXPECT_TRUE(writer) << writer.error().ToString();
    if (!writer) return {};
    const auto read = std::ssize(bodies);
    auto refused = (*writer)->Write(
        BatchOf(bodies), {.position = "p", .counts = {.read = read, .written = read}}, {});
    EXPECT_TRUE(refused) << refused.error().ToString();
    EXPECT_TRUE((*writer)->Finish());
    std::vector<std::string> reasons(bodies.size());
    if (!refused) return {};
    for (const Refused& one : *refused) reasons[one.index] = one.reason;
    return reasons;
  }

  // Copies all rows of table `t` into table `u` of the same file. The number of rows that could not
  // be read.
  int CopyToU() {
    auto source = OpenSource(Url(), RealEnv()).value();
    auto reader = source->Read(source->Partitions("t").value().at(0), "", {}).value();
    int defects = 0;
    Batch batch;
    while (auto next = reader->Next().value()) {
      defects += next->defect.empty() ? 0 : 1;
      if (next->defect.empty()) batch.Add(*next);
    }
    auto writer = OpenSink(Url("#u"), RealEnv()).value()->Open("u", FenceOf(++epoch_)).value();
    const auto refused = writer->Write(batch, {}, {});
    EXPECT_TRUE(refused && refused->empty());
    return defects;
  }

  // The bodies of all rows of table t.
  std::vector<std::string> ReadAll(std::string* defect = nullptr, const std::string& rest = "#t") {
    auto source = OpenSource(Url(rest), RealEnv()).value();
    std::vector<std::string> bodies;
    const auto partitions = source->Partitions("t").value();
    for (const Partition& partition : partitions) {
      auto reader = source->Read(partition, "", {}).value();
      while (auto next = reader->Next().value()) {
        bodies.emplace_back(next->body);
        if (defect != nullptr) *defect = next->defect;
      }
    }
    return bodies;
  }

  testing::TemporaryFolder folder_;
  int64_t epoch_ = 0;
};

TEST_F(SqliteSinkTest, MustersTablesAreNotListedAsASource) {
  ASSERT_TRUE(Db()->Execute(
      "CREATE TABLE t (id INTEGER PRIMARY KEY); CREATE TABLE muster_mine (id INTEGER PRIMARY KEY);"
      "CREATE TABLE muster_records (key TEXT); CREATE TABLE muster_events (id TEXT);"
      "CREATE TABLE muster_progress (run TEXT)"));
  const auto source = OpenSource(Url(""), RealEnv()).value();
  std::vector<std::string> names;
  const auto collections = source->Collections().value();
  for (const Collection& collection : collections) names.push_back(collection.name);
  EXPECT_EQ(names, (std::vector<std::string>{"muster_mine", "t"}));
  names.clear();
  const auto unlisted = source->Unlisted().value();
  for (const LeftOut& one : unlisted) names.push_back(one.name);
  EXPECT_EQ(names, (std::vector<std::string>{"muster_events", "muster_records"}));
  // By its name it can be read.
  EXPECT_EQ(OpenSource(Url("#muster_records"), RealEnv()).value()->Collections()->size(), 1u);
}

TEST_F(SqliteSinkTest, WrittenValuesAreReadBack) {
  ASSERT_TRUE(Db()->Execute("CREATE TABLE t (i INTEGER, r REAL, t TEXT, b BLOB, j JSON_TEXT, a)"));
  const std::vector<std::string> bodies = {
      R"({"i":9223372036854775807,"r":0.1,"t":"a\"b\\c\u0001é🚀","b":"/wA=","j":{"x":[1.0, 1e3]},"a":1.5})",
      R"({"i":-1,"r":1.0,"t":"","b":"","j":"text","a":"text"})",
      R"({"i":null,"r":null,"t":null,"b":null,"j":null,"a":null})",
      R"({"i":0,"r":1e+300,"t":"123456789012345678901234567890","b":null,"j":1.50,"a":7})",
  };
  EXPECT_EQ(WriteAll(bodies), std::vector<std::string>(4));
  EXPECT_EQ(ReadAll(), bodies);
  EXPECT_EQ(Query("SELECT group_concat(typeof(i) || typeof(r) || typeof(t) || typeof(b), ' ')"
                  " FROM t"),
            "integerrealtextblob integerrealtextblob nullnullnullnull integerrealtextnull");
}

TEST_F(SqliteSinkTest, MisfitsAreRefusedWithAReasonAndTheRestIsWritten) {
  ASSERT_TRUE(
      Db()->Execute("CREATE TABLE t (id INTEGER PRIMARY KEY, n TEXT NOT NULL DEFAULT 'd',"
                    " b BLOB, x AS (id * 2))"));
  const auto reasons = WriteAll({
      R"({"id":1,"n":"a","x":99})",
      R"({"id":1,"n":"b"})",
      R"({"id":2,"n":null})",
      R"({"id":"three"})",
      R"({"id":4,"wrong":1})",
      R"({"id":5,"b":"not base64"})",
      R"({"id":99999999999999999999})",
      R"({"id":7)",
      R"({"id":8,"n":99999999999999999999.50,"b":"\\xff"})",
      R"({"n":true})",
      R"({})",
  });
  const char* const parts[] = {"",
                               "UNIQUE",
                               "NOT NULL",
                               "datatype mismatch",
                               "'wrong'",
                               "base64",
                               "99999999999999999999",
                               "JSON",
                               "",
                               "",
                               ""};
  for (size_t i = 0; i < reasons.size(); ++i) {
    EXPECT_EQ(reasons[i].empty(), std::string(parts[i]).empty()) << i << reasons[i];
    EXPECT_NE(reasons[i].find(parts[i]), std::string::npos) << i << reasons[i];
  }
  EXPECT_EQ(Query("SELECT group_concat(id || n, ' ') FROM t"),
            "1a 899999999999999999999.50 91 10d");
  EXPECT_EQ(Query("SELECT progress ->> 'written' || ' ' || (progress ->> 'failed') FROM"
                  " muster_progress"),
            "4 7");
}

TEST_F(SqliteSinkTest, NumbersThatAColumnWouldRoundAreRefused) {
  ASSERT_TRUE(Db()->Execute("CREATE TABLE t (i INTEGER, r REAL, t TEXT, n NUMERIC, a)"));
  const std::vector<std::string> kept = {
      R"({"i":9007199254740993,"r":0.1,"t":0.12345678901234567890,"n":9007199254740993,"a":0.5})",
      R"({"i":"9007199254740993","r":"0.1","t":"0.12345678901234567890","n":"x","a":"0.12345678901234567890"})",
      R"({"r":9007199254740992,"n":0.30000000000000004})"};
  const std::vector<std::string> rounded = {
      R"({"r":9007199254740993})",       R"({"r":"9007199254740993"})",
      R"({"r":0.1234567890123456789})",  R"({"n":0.1234567890123456789})",
      R"({"a":0.1234567890123456789})",  R"({"i":99999999999999999999})",
      R"({"n":"0.1234567890123456789"})"};
  EXPECT_EQ(WriteAll(kept), std::vector<std::string>(kept.size()));
  const auto reasons = WriteAll(rounded);
  for (size_t i = 0; i < reasons.size(); ++i) {
    EXPECT_NE(reasons[i].find("would change"), std::string::npos) << rounded[i] << reasons[i];
  }
  auto writer =
      OpenSink(Url("?misfits=convert#t"), RealEnv()).value()->Open("t", FenceOf(++epoch_)).value();
  Batch batch;
  for (const std::string& body : rounded) {
    batch.Add({.id = {}, .routing = {}, .body = body, .position = "p", .defect = {}});
  }
  const auto refused = writer->Write(batch, {}, {});
  ASSERT_TRUE(refused) << refused.error().ToString();
  EXPECT_TRUE(refused->empty());
}

TEST_F(SqliteSinkTest, NoValueSilentlyChangesItsStorageClass) {
  ASSERT_TRUE(Db()->Execute(
      "CREATE TABLE t (i INTEGER, r REAL, t TEXT, b BLOB, n NUMERIC, j JSON_TEXT, a);"
      "CREATE TABLE u (i INTEGER, r REAL, t TEXT, b BLOB, n NUMERIC, j JSON_TEXT, a)"));
  const std::string values[] = {"1", "1.5", "'text'", "x'00ff'", "'it''s'", "x''", "'1'", "'{}'"};
  for (const std::string column : {"i", "r", "t", "b", "n", "j", "a"}) {
    for (const std::string& value : values) {
      ASSERT_TRUE(Db()->Execute("INSERT INTO t (" + column + ") VALUES (" + value + ")"));
    }
  }
  // Two blobs in each column that is not BLOB, four texts in the one that is, and two texts that
  // are not JSON.
  EXPECT_EQ(CopyToU(), 6 * 2 + 4 + 2);
  const std::string row = "quote(i)||quote(r)||quote(t)||quote(b)||quote(n)||quote(j)||quote(a)";
  EXPECT_EQ(Query("SELECT count(*) FROM u"), std::to_string(7 * 8 - 18));
  EXPECT_EQ(Query("SELECT count(*) FROM u WHERE " + row + " NOT IN (SELECT " + row + " FROM t)"),
            "0");
}

TEST_F(SqliteSinkTest, MisfitValueIsADefectThatNamesItsColumn) {
  ASSERT_TRUE(Db()->Execute("CREATE TABLE t (n TEXT); INSERT INTO t VALUES (x'6869')"));
  std::string defect;
  // Not a document, so that a redrive cannot write it.
  EXPECT_EQ(ReadAll(&defect), std::vector<std::string>{"{\"n\":x'6869'}"});
  EXPECT_TRUE(defect.starts_with("column 'n' is declared TEXT but holds a blob")) << defect;
  EXPECT_EQ(ReadAll(&defect, "?misfits=convert#t"), std::vector<std::string>{R"({"n":"aGk="})"});
  EXPECT_EQ(defect, "");
  ASSERT_TRUE(
      Db()->Execute("DROP TABLE t; CREATE TABLE t (id TEXT, document JSON_TEXT);"
                    "INSERT INTO t VALUES ('1', CAST('{}' AS BLOB))"));
  EXPECT_EQ(ReadAll(&defect), std::vector<std::string>{"x'7b7d'"});
  EXPECT_NE(defect, "");
}

TEST_F(SqliteSinkTest, ABlobAsAKeyIsAnIdInBase64) {
  ASSERT_TRUE(Db()->Execute("CREATE TABLE t (k BLOB PRIMARY KEY); INSERT INTO t VALUES (x'ff00')"));
  auto source = OpenSource(Url(), RealEnv()).value();
  auto reader = source->Read(source->Partitions("t").value().at(0), "", {}).value();
  EXPECT_EQ(reader->Next().value()->id, "/wA=");
}

TEST_F(SqliteSinkTest, JsonNullAndSqlNullStayDistinct) {
  ASSERT_TRUE(Db()->Execute(
      "CREATE TABLE t (id INTEGER PRIMARY KEY, a JSON_TEXT, b JSON_TEXT);"
      "INSERT INTO t VALUES (1,'null',NULL), (2,NULL,'null'), (3,NULL,NULL),"
      " (4,'null','null'), (5,'\"null\"','{\"x\":null}');"
      "CREATE TABLE u (id INTEGER PRIMARY KEY, a JSON_TEXT, b JSON_TEXT DEFAULT '{}')"));
  EXPECT_EQ(CopyToU(), 0);
  const std::string rows = "SELECT group_concat(quote(a) || quote(b), ' ') FROM ";
  EXPECT_EQ(Query(rows + "u"), Query(rows + "t"));
}

TEST_F(SqliteSinkTest, ARowWithJsonNullKeepsDefaultsAndColumnsThatAreNotNull) {
  ASSERT_TRUE(Db()->Execute(
      "CREATE TABLE t (id INTEGER PRIMARY KEY, a JSON_TEXT, b JSON_TEXT);"
      "INSERT INTO t VALUES (1,'null',NULL), (2,NULL,NULL);"
      "CREATE TABLE u (id INTEGER PRIMARY KEY, a JSON_TEXT, b JSON_TEXT NOT NULL DEFAULT '{}',"
      " s TEXT NOT NULL DEFAULT 'new')"));
  EXPECT_EQ(CopyToU(), 0);
  EXPECT_EQ(Query("SELECT group_concat(quote(a) || b || s, ' ') FROM u"),
            "'null'nullnew NULLnullnew");
}

TEST_F(SqliteSinkTest, AFollowingItemReplacesRowsOfTheSameKey) {
  ASSERT_TRUE(
      Db()->Execute("CREATE TABLE t (_id TEXT PRIMARY KEY, n INTEGER UNIQUE, s TEXT DEFAULT 'd',"
                    " twice AS (n * 2))"));
  EXPECT_EQ(WriteAll({R"({"_id":"a","n":1,"s":"x"})", R"({"_id":"b","n":2})"}),
            std::vector<std::string>(2));
  EXPECT_NE(WriteAll({R"({"_id":"a","n":9})"})[0], "") << "only a following one";
  Fence follower = FenceOf(1);
  follower.item = "c__0__9";
  follower.rank = kFirstFollowerRank;
  auto writer = OpenSink(Url(), RealEnv()).value()->Open("c", follower).value();
  const auto refused = writer->Write(
      BatchOf({R"({"_id":"a","n":3})", R"({"_id":"c","n":4})", R"({"_id":"d","n":2})"}), {}, {});
  ASSERT_TRUE(refused) << refused.error().ToString();
  ASSERT_EQ(refused->size(), 1U) << "the unique number of another row";
  EXPECT_EQ(refused->front().index, 2U);
  EXPECT_EQ(Query("SELECT group_concat(_id || n || s || twice, ' ') FROM t"), "a3d6 b2d4 c4d8");
}

TEST_F(SqliteSinkTest, TextInABlobColumnKeepsItsBytesIfConverted) {
  ASSERT_TRUE(
      Db()->Execute("CREATE TABLE t (b BLOB); INSERT INTO t VALUES ('abcd'), ('\\x41'), ('é!')"));
  const auto bodies = ReadAll(nullptr, "?misfits=convert#t");
  ASSERT_TRUE(Db()->Execute("DELETE FROM t"));
  EXPECT_EQ(WriteAll(bodies), std::vector<std::string>(3));
  EXPECT_EQ(Query("SELECT group_concat(CAST(b AS TEXT), ' ') FROM t"), "abcd \\x41 é!");
}

TEST_F(SqliteSinkTest, NullInAJsonColumnThatIsNotNullIsJson) {
  ASSERT_TRUE(Db()->Execute("CREATE TABLE t (j JSON_TEXT NOT NULL, n JSON_TEXT)"));
  EXPECT_EQ(WriteAll({R"({"j":null,"n":null})"}), std::vector<std::string>(1));
  EXPECT_EQ(Query("SELECT quote(j) || quote(n) FROM t"), "'null'NULL");
}

TEST_F(SqliteSinkTest, RowsDroppedByATriggerAreSkipped) {
  ASSERT_TRUE(Db()->Execute(
      "CREATE TABLE t (id INTEGER PRIMARY KEY);"
      "CREATE TRIGGER odd BEFORE INSERT ON t WHEN new.id % 2 = 0 BEGIN SELECT raise(IGNORE); END"));
  auto sink = OpenSink(Url(), RealEnv()).value();
  auto writer = sink->Open("c", FenceOf(1)).value();
  const auto refused =
      writer->Write(BatchOf({R"({"id":1})", R"({"id":2})", R"({"id":1})", R"({"id":4})"}),
                    {.position = "p", .counts = {.read = 4, .written = 4}}, {});
  ASSERT_TRUE(refused) << refused.error().ToString();
  EXPECT_EQ(writer->Known()->counts,
            (Counts{.read = 4, .written = 1, .skipped = 2, .failed = 1, .bytes = 0}));
  EXPECT_EQ(Query("SELECT count(*) FROM t"), "1");
}

TEST_F(SqliteSinkTest, TablesAreCreatedFromTheSourcesMetadata) {
  auto sink = OpenSink(Url(""), RealEnv()).value();
  const Collection table{"it's", R"x({"columns":[{"name":"id","type":"bigint","nullable":false},
        {"name":"n","type":"numeric(10,2)"},{"name":"d","type":"jsonb"},{"name":"b","type":"bytea"},
        {"name":"a","type":"text[]"},{"name":"r","type":"double precision"}],"key":["id"]})x"};
  const auto plan = sink->Prepare(table, true);
  ASSERT_TRUE(plan) << plan.error().ToString();
  EXPECT_EQ((*plan)[0].change,
            "CREATE TABLE IF NOT EXISTS \"it's\" (\"id\" INTEGER NOT NULL, \"n\" TEXT, \"d\""
            " JSON_TEXT, \"b\" BLOB, \"a\" JSON_TEXT, \"r\" REAL, PRIMARY KEY (\"id\"))");
  EXPECT_FALSE(std::filesystem::exists(File()));
  EXPECT_EQ(sink->Prepare(table, false).value().size(), 1);
  EXPECT_TRUE(sink->Prepare(table, false).value().empty());
}

TEST_F(SqliteSinkTest, WholeDocumentsKeepTheirBytesIdsAndRouting) {
  ASSERT_TRUE(Db()->Execute("CREATE TABLE t (id TEXT, routing TEXT, document JSON_TEXT)"));
  const std::string body = R"({"a":1.0, "b":[1e3],"a":2})";
  EXPECT_EQ(WriteAll({body}), std::vector<std::string>(1));
  EXPECT_EQ(ReadAll(), std::vector<std::string>{body});
  EXPECT_EQ(Query("SELECT id FROM t WHERE routing IS NULL"), "the id");
}

TEST_F(SqliteSinkTest, TextThatIsNotUtf8IsADefect) {
  ASSERT_TRUE(Db()->Execute("CREATE TABLE t (n TEXT); INSERT INTO t VALUES (CAST(x'ff' AS TEXT))"));
  std::string defect;
  // Its bytes are kept, so that the body does not pass as the document.
  EXPECT_EQ(ReadAll(&defect), std::vector<std::string>{"{\"n\":\"\xff\"}"});
  EXPECT_EQ(defect, "column 'n' is not valid UTF-8");
}

TEST_F(SqliteSinkTest, MissingAndWrongTablesAreReported) {
  for (const std::string url :
       {"sqlite:", "sqlite://host/file#t", "sqlite:f?documents=maybe", "sqlite:f?nonsense=1"}) {
    const auto sink = OpenSink(url, RealEnv());
    ASSERT_FALSE(sink) << url;
    EXPECT_EQ(sink.error().code, Code::kInvalid) << url;
  }
  ASSERT_TRUE(Db()->Execute("CREATE VIEW v AS SELECT 1 AS one UNION ALL SELECT 1"));
  const auto no_key = OpenSource(Url("#v"), RealEnv()).value()->Partitions("v");
  ASSERT_FALSE(no_key);
  EXPECT_NE(no_key.error().hint.find("?key="), std::string::npos);
  const auto not_unique = OpenSource(Url("?key=one#v"), RealEnv()).value()->Partitions("v");
  ASSERT_FALSE(not_unique);
  EXPECT_NE(not_unique.error().message.find("not unique"), std::string::npos);
  const auto missing = OpenSink(Url("#nowhere"), RealEnv()).value()->Open("c", FenceOf(1));
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, Code::kNotFound);
}

// Tables from before there were versions lack the column `format`.
TEST_F(SqliteSinkTest, AnOlderVersionsProgressIsUsedAndANewerOnesRefused) {
  const std::string columns =
      "CREATE TABLE muster_progress (run TEXT NOT NULL, item TEXT NOT NULL, incarnation TEXT NOT "
      "NULL, epoch INTEGER NOT NULL, holder TEXT NOT NULL, sealed INTEGER NOT NULL DEFAULT 0, "
      "progress TEXT, updated TEXT NOT NULL DEFAULT (datetime('now'))";
  const std::string end = ", PRIMARY KEY (run, item)) STRICT, WITHOUT ROWID";
  ASSERT_TRUE(Db()->Execute("CREATE TABLE t (id INTEGER PRIMARY KEY);" + columns + end));
  EXPECT_EQ(WriteAll({R"({"id":1})"}), std::vector<std::string>{""});
  EXPECT_EQ(Query("SELECT progress ->> 'written' FROM muster_progress WHERE run <> ''"), "1");
  ASSERT_TRUE(Db()->Execute("DROP TABLE muster_progress;" + columns +
                            ", format INTEGER NOT NULL DEFAULT 2" + end));
  const auto sink = OpenSink(Url(), RealEnv());
  const auto refused =
      sink ? (*sink)->Open("c", FenceOf(9)) : Result<std::unique_ptr<Writer>>(sink.error());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kIncompatible);
  EXPECT_NE(refused.error().message.find("table muster_progress has schema version 2"),
            std::string::npos)
      << refused.error().message;
}

TEST_F(SqliteSinkTest, ANewProgressTableHasItsVersion) {
  ASSERT_TRUE(Db()->Execute("CREATE TABLE t (id INTEGER PRIMARY KEY)"));
  WriteAll({R"({"id":1})"});
  EXPECT_EQ(Query("SELECT max(format) FROM muster_progress"), "1");
}

}  // namespace
}  // namespace muster::pipeline
