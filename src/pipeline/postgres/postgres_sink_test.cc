#include "pipeline/postgres/postgres_sink.h"

#include <gtest/gtest.h>

#include <thread>

#include "muster/migrate.h"
#include "pipeline/postgres/postgres_progress.h"
#include "support/fault_proxy.h"
#include "support/postgres_test.h"
#include "support/shared_server.h"

// PostgreSQL specifics: types, refused rows, lost connections, read-only servers. The general sink
// contract is in tests/contract.

namespace muster::pipeline {
namespace {

using namespace std::chrono_literals;
using testing::FaultProxy;

class PostgresSinkTest : public testing::PostgresTest {
 protected:
  static std::unique_ptr<Sink> OpenAt(const std::string& url) {
    auto sink = OpenSink(url, RealEnv());
    EXPECT_TRUE(sink) << sink.error().ToString();
    return sink ? *std::move(sink) : nullptr;
  }
  static std::unique_ptr<Sink> OpenTable(const std::string& table = "t") {
    return OpenAt(server_->Url() + "#" + table);
  }
  static Fence FenceOf(int64_t epoch) {
    Fence fence;
    fence.run = "it's a run";
    fence.incarnation = "i";
    fence.item = "c__0__\\0";
    fence.epoch = epoch;
    return fence;
  }
  static std::unique_ptr<Writer> OpenWriter(Sink& sink, int64_t epoch = 1) {
    auto writer = sink.Open("c", FenceOf(epoch));
    EXPECT_TRUE(writer) << writer.error().ToString();
    return writer ? *std::move(writer) : nullptr;
  }

  static Batch BatchOf(const std::vector<std::string>& bodies) {
    Batch batch;
    for (const std::string& body : bodies) {
      batch.Add({.id = "the id", .routing = {}, .body = body, .position = "p", .defect = {}});
    }
    return batch;
  }
  static Progress After(int64_t read) {
    return {.position = std::to_string(read), .counts = {.read = read, .written = read}};
  }

  // Why each document was refused, "" if accepted; the table is `t`.
  static std::vector<std::string> WriteAll(const std::vector<std::string>& bodies) {
    auto sink = OpenTable();
    auto writer = OpenWriter(*sink);
    auto refused = writer->Write(BatchOf(bodies), After(std::ssize(bodies)), {});
    EXPECT_TRUE(refused) << refused.error().ToString();
    std::vector<std::string> reasons(bodies.size());
    if (!refused) return {};
    for (const Refused& one : *refused) reasons[one.index] = one.reason;
    return reasons;
  }
  static bool Has(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  }
};

TEST_F(PostgresSinkTest, ValuesArriveAsTheyAre) {
  server_->Exec(
      "CREATE TABLE t (id bigint, name text, price numeric, ratio float8, ok boolean, at "
      "timestamptz,"
      " day date, tags text[], grid int[], doc jsonb, exact json, raw bytea, addr inet, any_text "
      "text)");
  const auto reasons = WriteAll({
      R"({"id":9223372036854775807,"name":"a\tb\\c\nd\u00e9\ud83d\ude80 \"q\"","price":1e400,)"
      R"("ratio":"NaN","ok":true,"at":"2024-02-29T12:00:00+01:00","day":1709164800000,)"
      R"("tags":["a b","c\"d\\e",null,"NULL",""],"grid":[[1,2],[3,4]],"doc":{"n":1.0, "x":[1]},)"
      R"("exact":{ "z":1.0,"a":1e3},"raw":"/wA=","addr":"::1","any_text":{"k":[1, 2]}})",
      R"({"raw":"\\xff00","at":0,"price":123456789012345678901234567890.123,"any_text":1.50,)"
      R"("doc":"text","tags":"{x,y}","name":"\\N","ok":null})",
  });
  EXPECT_EQ(reasons, (std::vector<std::string>{"", ""}));
  const auto first = [](const std::string& what) {
    return server_->Exec("SELECT (" + what + ")::text FROM t WHERE id IS NOT NULL");
  };
  EXPECT_EQ(first("id"), "9223372036854775807");
  EXPECT_EQ(first("name"), "a\tb\\c\ndé🚀 \"q\"");
  EXPECT_EQ(first("price = 1e400"), "true");
  EXPECT_EQ(first("ratio"), "NaN");
  EXPECT_EQ(first("at AT TIME ZONE 'UTC'"), "2024-02-29 11:00:00");
  EXPECT_EQ(first("day"), "2024-02-29");
  EXPECT_EQ(first("tags"), R"({"a b","c\"d\\e",NULL,"NULL",""})");
  EXPECT_EQ(first("grid"), "{{1,2},{3,4}}");
  EXPECT_EQ(first("doc"), R"({"n": 1.0, "x": [1]})");
  EXPECT_EQ(first("exact"), R"({ "z":1.0,"a":1e3})");
  EXPECT_EQ(first("raw"), "\\xff00");
  EXPECT_EQ(first("any_text"), R"({"k":[1, 2]})");
  const auto second = [](const std::string& what) {
    return server_->Exec("SELECT (" + what + ")::text FROM t WHERE id IS NULL");
  };
  EXPECT_EQ(second("raw"), "\\xff00");
  EXPECT_EQ(second("at AT TIME ZONE 'UTC'"), "1970-01-01 00:00:00");
  EXPECT_EQ(second("price"), "123456789012345678901234567890.123");
  EXPECT_EQ(second("any_text"), "1.50");
  EXPECT_EQ(second("doc"), "\"text\"");
  EXPECT_EQ(second("tags"), "{x,y}");
  EXPECT_EQ(second("name"), "\\N");
  EXPECT_EQ(second("ok IS NULL AND ratio IS NULL"), "true");
}

TEST_F(PostgresSinkTest, NumbersThatAColumnWouldRoundAreRefused) {
  server_->Exec(
      "CREATE DOMAIN cents AS numeric(10,2);"
      "CREATE TABLE t (id int, r real, f double precision, n numeric(10,2), w numeric, c cents,"
      " a double precision[], m numeric(6,1)[])");
  const std::vector<std::string> kept = {
      R"({"id":1,"r":0.1,"f":0.1,"n":1.250,"w":0.12345678901234567890,"c":-1.5,"a":[0.1,"NaN"]})",
      R"({"id":2,"r":"3.1415927","f":1e300,"n":"7","m":[[1.5],[2.50]]})",
      R"({"id":3,"f":0.30000000000000004,"n":125e-2,"r":"Infinity","m":"{1.5}"})"};
  const std::vector<std::string> rounded = {
      R"({"id":11,"r":16777217})",
      R"({"id":12,"f":9007199254740993})",
      R"({"id":13,"f":0.1234567890123456789})",
      R"({"id":14,"f":"0.1234567890123456789"})",
      R"({"id":15,"n":1.005})",
      R"({"id":16,"c":1.005})",
      R"({"id":17,"a":[[1],[9007199254740993]]})",
      R"({"id":18,"m":[1.55]})",
      R"({"id":19.5})",  // by the server itself
      R"({"id":"20.5"})",
  };
  EXPECT_EQ(WriteAll(kept), std::vector<std::string>(kept.size()));
  EXPECT_EQ(
      server_->Exec("SELECT r || ' ' || f || ' ' || n || ' ' || w || ' ' || c || ' ' || a::text"
                    " FROM t WHERE id = 1"),
      "0.1 0.1 1.25 0.12345678901234567890 -1.50 {0.1,NaN}");
  server_->Exec("TRUNCATE t; DELETE FROM muster_progress");
  const auto reasons = WriteAll(rounded);
  for (size_t i = 0; i < reasons.size(); ++i) EXPECT_NE(reasons[i], "") << rounded[i];
  EXPECT_TRUE(
      Has(reasons[1], "'f' is a number that double precision would round: 9007199254740993"))
      << reasons[1];
  EXPECT_TRUE(Has(reasons[5], "'c' is a number that cents would round: 1.005")) << reasons[5];
  EXPECT_TRUE(Has(reasons[6], "9007199254740993")) << reasons[6];
  EXPECT_EQ(server_->Exec("SELECT count(*) FROM t"), "0");

  server_->Exec("DELETE FROM muster_progress");
  const auto sink = OpenAt(server_->Url() + "?misfits=convert#t");
  const auto refused =
      OpenWriter(*sink)->Write(BatchOf({rounded[1], rounded[4], rounded[6]}), After(3), {});
  ASSERT_TRUE(refused) << refused.error().ToString();
  EXPECT_TRUE(refused->empty());
  EXPECT_EQ(server_->Exec("SELECT f::text FROM t WHERE id = 12"), "9.007199254740992e+15");
  EXPECT_FALSE(OpenSink(server_->Url() + "?misfits=round#t", RealEnv()));
}

TEST_F(PostgresSinkTest, MisfitsAreRefusedWithAReasonAndTheRestIsWritten) {
  server_->Exec("CREATE TABLE t (id int PRIMARY KEY, name varchar(3) NOT NULL, n smallint)");
  const auto reasons = WriteAll({
      R"({"id":1,"name":"a"})",
      R"({"id":2,"name":"b","wrong":1})",
      R"({"id":"three","name":"c"})",
      R"({"id":4})",
      R"({"id":1,"name":"d"})",
      R"({"id":6,"name":"long"})",
      R"({"id":7,"name":"a\u0000b"})",
      R"({"id":8,"name":"c)",
      "{\"id\":9,\"name\":\"\xff\"}",
      R"([10])",
      R"({"id":11,"name":"e","n":99999})",
      R"({"id":12,"name":"f"} {})",
      R"({"id":13,"name":"g"})",
  });
  EXPECT_EQ(reasons[0], "");
  EXPECT_TRUE(Has(reasons[1], "'wrong' is not a column")) << reasons[1];
  EXPECT_TRUE(Has(reasons[2], "\"three\", column id")) << reasons[2];
  EXPECT_TRUE(Has(reasons[3], "violates not-null constraint")) << reasons[3];
  EXPECT_TRUE(Has(reasons[4], "duplicate key")) << reasons[4];
  EXPECT_TRUE(Has(reasons[5], "too long")) << reasons[5];
  EXPECT_TRUE(Has(reasons[6], "U+0000")) << reasons[6];
  EXPECT_TRUE(Has(reasons[7], "JSON")) << reasons[7];
  EXPECT_TRUE(Has(reasons[8], "UTF-8")) << reasons[8];
  EXPECT_TRUE(Has(reasons[9], "JSON object")) << reasons[9];
  EXPECT_TRUE(Has(reasons[10], "out of range")) << reasons[10];
  EXPECT_TRUE(Has(reasons[11], "JSON object")) << reasons[11];
  EXPECT_EQ(reasons[12], "");
  EXPECT_EQ(server_->Exec("SELECT string_agg(id::text, ',' ORDER BY id) FROM t"), "1,13");
  EXPECT_EQ(server_->Exec("SELECT concat_ws(',', progress->>'read', progress->>'written',"
                          " progress->>'failed') FROM muster_progress"),
            "13,2,11");
}

TEST_F(PostgresSinkTest, AnyPatternOfBadRowsIsFound) {
  server_->Exec(
      "CREATE TABLE parent (id int PRIMARY KEY); INSERT INTO parent VALUES (1);"
      "CREATE TABLE t (id int, parent int REFERENCES parent)");
  // The server reports the line of a bad number, but not of a missing parent.
  for (const std::string pattern :
       {"b", "bbbbbbbbbbbbbbbb", "ggggggggggggggggm", "mggggggggggggggg", "gbgmgbgmgggggbbmm",
        "mmmmmmmmmmmmmmmmm", "gggggggggggggggggggb", "bggggggggggggggggggg"}) {
    server_->Exec(
        "SET client_min_messages = error; TRUNCATE t; DROP TABLE IF EXISTS muster_progress");
    std::vector<std::string> bodies;
    std::string good;
    for (size_t i = 0; i < pattern.size(); ++i) {
      const std::string number = std::to_string(i);
      bodies.push_back(pattern[i] == 'b'   ? R"({"id":"bad","parent":1})"
                       : pattern[i] == 'm' ? R"({"id":)" + number + R"(,"parent":2})"
                                           : R"({"id":)" + number + R"(,"parent":1})");
      if (pattern[i] == 'g') good += (good.empty() ? "" : ",") + number;
    }
    const auto reasons = WriteAll(bodies);
    for (size_t i = 0; i < pattern.size(); ++i) {
      EXPECT_EQ(reasons[i].empty(), pattern[i] == 'g') << pattern << " " << i << reasons[i];
    }
    EXPECT_EQ(server_->Exec("SELECT coalesce(string_agg(id::text, ',' ORDER BY id), '') FROM t"),
              good)
        << pattern;
  }
}

TEST_F(PostgresSinkTest, DeferredConstraintRefusesItsRows) {
  server_->Exec(
      "CREATE TABLE parent (id int PRIMARY KEY);"
      "CREATE TABLE t (id int, parent int REFERENCES parent DEFERRABLE INITIALLY DEFERRED)");
  const auto reasons = WriteAll({R"({"id":1})", R"({"id":2,"parent":2})", R"({"id":3})"});
  EXPECT_EQ(reasons[0] + reasons[2], "");
  EXPECT_TRUE(Has(reasons[1], "foreign key")) << reasons[1];
  EXPECT_EQ(server_->Exec("SELECT count(*) FROM t"), "2");
}

TEST_F(PostgresSinkTest, TruncatedOrRecreatedTableHasANewIdentity) {
  const auto identity = [] { return OpenTable()->Identity("c").value(); };
  server_->Exec("CREATE TABLE t (id int); INSERT INTO t VALUES (1)");
  const std::string before = identity();
  server_->Exec("INSERT INTO t VALUES (2); DELETE FROM t WHERE id = 1");
  EXPECT_EQ(identity(), before);
  server_->Exec("TRUNCATE t");
  const std::string emptied = identity();
  EXPECT_NE(emptied, before);
  server_->Exec("DROP TABLE t; CREATE TABLE t (id int)");
  EXPECT_NE(identity(), emptied);
  EXPECT_NE(identity(), before);
}

TEST_F(PostgresSinkTest, NullInAJsonColumnThatIsNotNullIsJson) {
  server_->Exec("CREATE TABLE t (j jsonb NOT NULL, n jsonb)");
  EXPECT_EQ(WriteAll({R"({"j":null,"n":null})"}), std::vector<std::string>{""});
  EXPECT_EQ(server_->Exec("SELECT j::text || (n IS NULL)::text FROM t"), "nulltrue");
}

TEST_F(PostgresSinkTest, OnlyStringsBecomeBytes) {
  server_->Exec("CREATE TABLE t (b bytea)");
  for (const auto& reason : WriteAll({R"({"b":1.5})", R"({"b":true})", R"({"b":[1]})"})) {
    EXPECT_TRUE(Has(reason, "neither base64")) << reason;
  }
}

TEST_F(PostgresSinkTest, TriggerThatFailsAtCommitRefusesItsRows) {
  server_->Exec(
      "CREATE TABLE t (id int);"
      "CREATE FUNCTION no_two() RETURNS trigger LANGUAGE plpgsql AS"
      " $$BEGIN IF new.id = 2 THEN RAISE EXCEPTION 'no two'; END IF; RETURN new; END$$;"
      "CREATE CONSTRAINT TRIGGER late AFTER INSERT ON t DEFERRABLE INITIALLY DEFERRED"
      " FOR EACH ROW EXECUTE FUNCTION no_two()");
  const auto reasons = WriteAll({R"({"id":1})", R"({"id":2})", R"({"id":3})"});
  EXPECT_EQ(reasons, (std::vector<std::string>{"", "no two", ""}));
  EXPECT_EQ(server_->Exec("SELECT count(*) FROM t"), "2");
}

TEST_F(PostgresSinkTest, RowsDroppedByATriggerAreSkipped) {
  server_->Exec(
      "CREATE TABLE t (id int PRIMARY KEY);"
      "CREATE FUNCTION only_odd() RETURNS trigger LANGUAGE plpgsql AS"
      " $$BEGIN IF new.id % 2 = 0 THEN RETURN NULL; END IF; RETURN new; END$$;"
      "CREATE TRIGGER odd BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION only_odd()");
  auto sink = OpenTable();
  auto writer = OpenWriter(*sink);
  // Includes a refused row, so that the others are copied again.
  const auto refused = writer->Write(
      BatchOf({R"({"id":1})", R"({"id":2})", R"({"id":1})", R"({"id":4})", R"({"id":5})"}),
      After(5), {});
  ASSERT_TRUE(refused) << refused.error().ToString();
  const auto skipped = std::count_if(refused->begin(), refused->end(),
                                     [](const Refused& one) { return one.skipped; });
  EXPECT_EQ(skipped, 2);
  EXPECT_EQ(refused->size(), 3U);
  EXPECT_EQ(writer->Known()->counts,
            (Counts{.read = 5, .written = 2, .skipped = 2, .failed = 1, .bytes = 0}));
  EXPECT_EQ(server_->Exec("SELECT count(*) FROM t"), "2");
}

TEST_F(PostgresSinkTest, MissingFieldGetsTheDefaultAndGeneratedColumnsAreSkipped) {
  server_->Exec(
      "CREATE TABLE t (id int GENERATED ALWAYS AS IDENTITY, name text, state text DEFAULT"
      " 'new', twice text GENERATED ALWAYS AS (name || name) STORED)");
  EXPECT_EQ(WriteAll({R"({"name":"a"})", R"({"name":"b","state":"old"})",
                      R"({"name":"c","state":null,"id":77})", R"({"name":"d","twice":"?"})"}),
            std::vector<std::string>(4));
  EXPECT_EQ(server_->Exec("SELECT string_agg(concat_ws('/', id, state, twice), ' ' ORDER BY name)"
                          " FROM t"),
            "1/new/aa 2/old/bb 77/cc 3/new/dd");
}

TEST_F(PostgresSinkTest, ARowWithJsonNullKeepsDefaultsAndColumnsThatAreNotNull) {
  server_->Exec(
      "CREATE TABLE t (a jsonb, b jsonb NOT NULL DEFAULT '{}', c jsonb DEFAULT '{}',"
      " s text NOT NULL DEFAULT 'new', at timestamptz NOT NULL DEFAULT now())");
  Batch batch;
  Document document{.id = {}, .routing = {}, .body = R"({"a":null})", .position = {}, .defect = {}};
  document.null_is_json = true;
  batch.Add(document);
  const auto refused = OpenWriter(*OpenTable())->Write(batch, After(1), {});
  ASSERT_TRUE(refused) << refused.error().ToString();
  EXPECT_TRUE(refused->empty()) << refused->front().reason;
  EXPECT_EQ(server_->Exec("SELECT concat_ws('/', a, b, c IS NULL, s) FROM t"), "null/null/t/new");
}

class PostgresFollowerTest : public PostgresSinkTest {
 protected:
  // As WriteAll, by an item that follows another.
  static std::vector<std::string> Follow(const std::vector<std::string>& bodies,
                                         const std::string& options = "") {
    auto sink = OpenAt(server_->Url() + options + "#t");
    Fence fence = FenceOf(1);
    fence.item = "c__0__9";
    fence.rank = kFirstFollowerRank;
    auto writer = sink->Open("c", fence).value();
    auto refused = writer->Write(BatchOf(bodies), After(std::ssize(bodies)), {});
    EXPECT_TRUE(refused) << refused.error().ToString();
    std::vector<std::string> reasons(bodies.size());
    if (!refused) return {};
    for (const Refused& one : *refused) reasons[one.index] = one.reason;
    return reasons;
  }
};

TEST_F(PostgresFollowerTest, RowsOfTheSameKeyAreReplaced) {
  server_->Exec(
      "CREATE TABLE t (id int PRIMARY KEY, n int UNIQUE, s text DEFAULT 'd', serial int GENERATED"
      " ALWAYS AS IDENTITY, twice int GENERATED ALWAYS AS (n * 2) STORED);"
      "CREATE TABLE child (id int REFERENCES t ON DELETE CASCADE); ");
  EXPECT_EQ(WriteAll({R"({"id":1,"n":1,"s":"x"})", R"({"id":2,"n":2})"}),
            std::vector<std::string>(2));
  server_->Exec("INSERT INTO child VALUES (1)");
  const auto reasons = Follow({
      R"({"id":1,"n":3})",
      R"({"id":4,"n":4,"s":"y"})",
      R"({"id":1,"n":5,"s":"z"})",
      R"({"id":6,"n":2,"s":"w"})",
      R"({"id":"seven","n":7})",
      R"({"id":4,"n":8})",
  });
  EXPECT_EQ(reasons[0] + reasons[1] + reasons[2] + reasons[5], "");
  EXPECT_TRUE(Has(reasons[3], "t_n_key")) << "the unique number of another row: " << reasons[3];
  EXPECT_TRUE(Has(reasons[4], "seven")) << reasons[4];
  EXPECT_EQ(
      server_->Exec("SELECT string_agg(concat_ws('/', id, n, s, twice), ' ' ORDER BY id) FROM t"),
      "1/5/z/10 2/2/d/4 4/8/d/16");
  EXPECT_EQ(server_->Exec("SELECT count(*) FROM child"), "1") << "replaced, not deleted";
  EXPECT_EQ(server_->Exec("SELECT progress->>'written' FROM muster_progress WHERE item LIKE '%9'"),
            "4");
}

TEST_F(PostgresFollowerTest, ManyRowsOfTheSameKeyTwiceInOneBatchLeaveTheLast) {
  server_->Exec("CREATE TABLE t (_id text PRIMARY KEY, n int)");
  std::vector<std::string> bodies;
  for (int i = 0; i < 40; ++i) {
    bodies.push_back(R"({"_id":")" + std::to_string(i % 20) + R"(","n":)" + std::to_string(i) +
                     "}");
  }
  EXPECT_EQ(WriteAll({R"({"_id":"3","n":-1})"}), std::vector<std::string>(1));
  EXPECT_EQ(Follow(bodies), std::vector<std::string>(40));
  EXPECT_EQ(server_->Exec("SELECT count(*) || ' ' || min(n) || ' ' || max(n) FROM t"), "20 20 39");
}

TEST_F(PostgresFollowerTest, TableThatCannotBeMergedIntoRefusesTheRow) {
  server_->Exec("CREATE TABLE t (id int PRIMARY KEY DEFERRABLE, n int)");
  EXPECT_EQ(WriteAll({R"({"id":1,"n":1})"}), std::vector<std::string>(1));
  const auto reasons = Follow({R"({"id":2,"n":2})", R"({"id":1,"n":3})"});
  EXPECT_EQ(reasons[0], "");
  EXPECT_TRUE(Has(reasons[1], "duplicate key")) << reasons[1];
}

TEST_F(PostgresFollowerTest, TransientMergeFailureIsRetried) {
  // A sequence counts on although the transaction is rolled back.
  server_->Exec(
      "CREATE TABLE t (id int PRIMARY KEY, n int); CREATE SEQUENCE tries;"
      "CREATE FUNCTION fail_twice() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN CASE"
      " nextval('tries') WHEN 1 THEN RAISE EXCEPTION 'a deadlock' USING ERRCODE = '40P01';"
      " WHEN 2 THEN RAISE EXCEPTION 'too slow' USING ERRCODE = '57014';"
      " ELSE RETURN new; END CASE; END$$;"
      "CREATE TRIGGER fails BEFORE UPDATE ON t FOR EACH ROW EXECUTE FUNCTION fail_twice()");
  EXPECT_EQ(WriteAll({R"({"id":1,"n":1})"}), std::vector<std::string>(1));
  EXPECT_EQ(Follow({R"({"id":2,"n":2})", R"({"id":1,"n":3})"}), std::vector<std::string>(2));
  EXPECT_EQ(server_->Exec("SELECT string_agg(id || '/' || n, ' ' ORDER BY id) FROM t"), "1/3 2/2");
  EXPECT_EQ(server_->Exec("SELECT last_value FROM tries"), "3");
}

TEST_F(PostgresFollowerTest, WithoutMergePrivilegeARowIsRefusedAndTheRestIsWritten) {
  const std::string database = "DATABASE \"" + server_->Exec("SELECT current_database()") + "\"";
  const auto follow_as = [&](const std::string& privileges) {
    const std::string role = testing::UniqueName("limited");
    server_->Exec("CREATE ROLE " + role + "; GRANT CREATE, USAGE ON SCHEMA public TO " + role +
                  "; GRANT ALL ON muster_progress TO " + role + "; GRANT " + privileges +
                  " ON t TO " + role +
                  "; TRUNCATE t, muster_progress; INSERT INTO t VALUES (1, 1)");
    ::testing::internal::CaptureStderr();
    const auto reasons = Follow({R"({"id":2,"n":2})", R"({"id":1,"n":3})", R"({"id":4,"n":4})"},
                                "?options=-c%20role%3D" + role);
    const std::string log = ::testing::internal::GetCapturedStderr();
    EXPECT_EQ(reasons.size(), 3U) << privileges;
    if (reasons.size() == 3) {
      EXPECT_EQ(reasons[0] + reasons[2], "");
      EXPECT_TRUE(Has(reasons[1], "duplicate key")) << reasons[1];
    }
    EXPECT_EQ(server_->Exec("SELECT string_agg(id || '/' || n, ' ' ORDER BY id) FROM t"),
              "1/1 2/2 4/4");
    server_->Exec("DROP OWNED BY " + role + "; DROP ROLE " + role);
    return log;
  };
  server_->Exec("CREATE TABLE t (id int PRIMARY KEY, n int)");
  EXPECT_EQ(WriteAll({}), std::vector<std::string>());
  for (const std::string privileges : {"INSERT, UPDATE", "INSERT, SELECT"}) {
    const std::string log = follow_as(privileges);
    EXPECT_TRUE(Has(log, "permission denied for table t")) << log;
    EXPECT_TRUE(Has(log, "SELECT and UPDATE")) << log;
  }
  server_->Exec("REVOKE TEMPORARY ON " + database + " FROM PUBLIC");
  const std::string log = follow_as("INSERT, SELECT, UPDATE");
  server_->Exec("GRANT TEMPORARY ON " + database + " TO PUBLIC");
  EXPECT_TRUE(Has(log, "temporary tables")) << log;
}

TEST_F(PostgresSinkTest, TableOfDocumentsStoresThemWhole) {
  server_->Exec("CREATE TABLE t (id text, routing text, document json)");
  const std::string body = R"({"a":1.0,"b":"x\ty\\", "a":2})";
  EXPECT_EQ(WriteAll({body}), std::vector<std::string>(1));
  EXPECT_EQ(server_->Exec("SELECT document::text FROM t WHERE id = 'the id' AND routing IS NULL"),
            body);
}

TEST_F(PostgresSinkTest, OddNamesAreQuoted) {
  server_->Exec("CREATE SCHEMA \"S.1\"; CREATE TABLE \"S.1\".\"T\"\"x\" (\"a'b\"\"c\" text)");
  auto sink = OpenTable("%22S.1%22.%22T%22%22x%22");
  auto writer = OpenWriter(*sink);
  ASSERT_TRUE(writer->Write(BatchOf({R"({"a'b\"c":"v"})"}), After(1), {}));
  EXPECT_EQ(server_->Exec("SELECT \"a'b\"\"c\" FROM \"S.1\".\"T\"\"x\""), "v");
  EXPECT_EQ(server_->Exec("SELECT count(*) FROM \"S.1\".muster_progress"), "1");
}

TEST_F(PostgresSinkTest, TablesAreCreatedFromTheSourcesMetadata) {
  auto sink = OpenAt(server_->Url());
  const Collection table{"orders", R"({"columns":[{"name":"id","type":"bigint","nullable":false},
                {"name":"Note","type":"text; DROP TABLE x"}],"key":["id"]})"};
  const auto plan = sink->Prepare(table, true).value();
  ASSERT_EQ(plan.size(), 1);
  EXPECT_EQ(plan[0].change,
            "CREATE TABLE IF NOT EXISTS \"orders\" (\"id\" bigint NOT NULL, \"Note\" text,"
            " PRIMARY KEY (\"id\"))");
  EXPECT_EQ(server_->Exec("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'"), "0");
  ASSERT_EQ(sink->Prepare(table, false).value().size(), 1);
  EXPECT_TRUE(sink->Prepare(table, false).value().empty());

  const Collection index{"logs-2024.01", R"({"mappings":{"properties":{"level":{"type":"keyword"},
      "n":{"type":"long"},"when":{"type":"date"},"who":{"properties":{}}}}})"};
  EXPECT_EQ(sink->Prepare(index, false).value()[0].change,
            "CREATE TABLE IF NOT EXISTS \"logs-2024.01\" (\"_id\" text NOT NULL, \"_routing\" text,"
            " \"level\" text, \"n\" bigint, \"when\" timestamp with time zone, \"who\" jsonb,"
            " PRIMARY KEY (\"_id\"))");
  EXPECT_EQ(sink->Prepare({"plain"}, false).value()[0].change,
            "CREATE TABLE IF NOT EXISTS \"plain\" (\"id\" text, \"document\" jsonb NOT NULL)");
  EXPECT_EQ(
      OpenAt(server_->Url() + "?documents=true")
          ->Prepare({"i2", index.metadata}, false)
          .value()[0]
          .change,
      "CREATE TABLE IF NOT EXISTS \"i2\" (\"id\" text NOT NULL, \"routing\" text, \"document\""
      " jsonb NOT NULL, PRIMARY KEY (\"id\"))");
}

TEST_F(PostgresSinkTest, IdAndRoutingHaveColumnsOfTheirOwn) {
  server_->Exec("CREATE TABLE t (_id text, _routing text, n int)");
  EXPECT_EQ(WriteAll({R"({"n":1})"}), std::vector<std::string>(1));
  EXPECT_EQ(server_->Exec("SELECT _id FROM t WHERE _routing IS NULL AND n = 1"), "the id");
}

// Fault 21: the connection is lost during COMMIT; the progress row decides.
TEST_F(PostgresSinkTest, ConnectionLostAnywhereInABatchAppliesItOnce) {
  server_->Exec("CREATE TABLE t (n int)");
  FaultProxy proxy(server_->port());
  auto sink = OpenAt(server_->Url(proxy.port()) + "#t");
  auto writer = OpenWriter(*sink);
  int64_t written = 0;
  int cuts = 0;
  // Byte by byte through the requests of a batch, then through the responses.
  for (const bool request : {true, false}) {
    for (size_t bytes = 0; bytes < 600; bytes += request ? 23 : 7) {
      if (request) {
        proxy.CutRequestAfter(bytes);
      } else {
        proxy.CutReplyAfter(bytes);
      }
      ++written;
      const auto done =
          writer->Write(BatchOf({"{\"n\":" + std::to_string(written) + "}"}), After(written), {});
      ASSERT_TRUE(done) << done.error().ToString();
      cuts += proxy.cuts() > cuts ? 1 : 0;
      proxy.Forget();
    }
  }
  EXPECT_GT(cuts, 30);
  EXPECT_EQ(server_->Exec("SELECT count(*) || ' ' || count(DISTINCT n) FROM t"),
            std::to_string(written) + " " + std::to_string(written));
  ASSERT_TRUE(writer->Finish());
}

TEST_F(PostgresSinkTest, WriteOfUnknownOutcomeIsSettledBySeal) {
  server_->Exec("CREATE TABLE t (n int)");
  FaultProxy proxy(server_->port());
  auto sink = OpenAt(server_->Url(proxy.port()) + "#t");
  auto writer = OpenWriter(*sink);
  std::stop_source stop;
  stop.request_stop();
  // One of these cuts hits the response to COMMIT.
  bool in_doubt = false;
  for (size_t bytes = 0; bytes < 600; bytes += 5) {
    const int64_t written = static_cast<int64_t>(bytes) / 5 + 1;
    const std::string body = "{\"n\":" + std::to_string(written) + "}";
    // Once over a connection that breaks, then again without a limit.
    proxy.CutReplyAfter(bytes);
    const auto done = writer->Write(BatchOf({body}), After(written), {.stop = stop.get_token()});
    proxy.Forget();
    ASSERT_FALSE(done);
    in_doubt = done.error().code == Code::kUnknownOutcome;
    EXPECT_TRUE(in_doubt || done.error().code == Code::kUnavailable) << done.error().ToString();
    if (in_doubt) break;
    ASSERT_TRUE(writer->Write(BatchOf({body}), After(written), {}));
  }
  EXPECT_TRUE(in_doubt);
  const auto sealed = writer->Seal();
  ASSERT_TRUE(sealed) << sealed.error().ToString();
  const std::string rows = server_->Exec("SELECT count(*) FROM t");
  EXPECT_EQ((*sealed)->position, rows);
}

TEST_F(PostgresSinkTest, AHolderStoppedInTheMiddleOfABatchDoesNotBlockTheNext) {
  server_->Exec("CREATE TABLE t (n int)");
  auto sink = OpenTable();
  auto old = OpenWriter(*sink, 1);
  ASSERT_TRUE(old->Write(BatchOf({"{\"n\":1}"}), After(1), {}));
  // A session of the same role that holds the row lock and hangs.
  auto stuck = sql::PgConnection::Open({.uri = server_->Url()}).value();
  const PostgresProgress progress("", FenceOf(2));
  ASSERT_TRUE(progress.Take(*stuck));
  const sql::PgStatement begin{"", "BEGIN", false};
  const sql::PgStatement lock{"", progress.LockSql(), false};
  const sql::PgParams none = {};
  const sql::PgCall calls[] = {{begin, none}, {lock, none}};
  ASSERT_TRUE(stuck->Execute(calls));

  auto young = OpenWriter(*sink, 3);
  ASSERT_TRUE(young);
  EXPECT_EQ(young->Known(), After(1));
  EXPECT_FALSE(stuck->Usable());
}

TEST_F(PostgresSinkTest, RestartingServerIsAwaited) {
  testing::PostgresServer server;  // its own: this one gets stopped
  server.Exec("CREATE TABLE t (n int)");
  auto sink = OpenAt(server.Url() + "#t");
  auto writer = OpenWriter(*sink);
  ASSERT_TRUE(writer->Write(BatchOf({"{\"n\":1}"}), After(1), {}));
  ASSERT_TRUE(writer->Flush());
  server.Stop();
  std::jthread later([&] { server.Start(); });
  const auto done = writer->Write(BatchOf({"{\"n\":2}"}), After(2), {});
  EXPECT_TRUE(done) << done.error().ToString();
  later.join();
  EXPECT_EQ(server.Exec("SELECT count(*) FROM t"), "2");
}

TEST_F(PostgresSinkTest, LostCommitsAreDetected) {
  server_->Exec("CREATE TABLE t (n int)");
  auto sink = OpenTable();
  auto writer = OpenWriter(*sink);
  ASSERT_TRUE(writer->Write(BatchOf({"{\"n\":1}"}), After(1), {}));
  // As after a failover to a server without the last commits.
  server_->Exec("UPDATE muster_progress SET progress = NULL; DELETE FROM t");
  const auto done = writer->Write(BatchOf({"{\"n\":2}"}), After(2), {});
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, Code::kUnavailable);
  EXPECT_TRUE(Has(done.error().ToString(), "lost commits")) << done.error().ToString();
  EXPECT_EQ(OpenWriter(*sink, 2)->Known(), Progress{});
}

TEST_F(PostgresSinkTest, MissingTablesAndPrivilegesAreReported) {
  auto sink = OpenTable("nowhere");
  const auto missing = sink->Open("c", FenceOf(1));
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, Code::kNotFound);
  EXPECT_TRUE(Has(missing.error().message, "nowhere")) << missing.error().message;

  server_->Exec("CREATE TABLE t (n int)");
  auto writer = OpenWriter(*OpenTable());
  const auto read_only = OpenAt(server_->Url() + "?options=-cdefault_transaction_read_only%3Don#t")
                             ->Open("c", FenceOf(2));
  ASSERT_FALSE(read_only);
  EXPECT_EQ(read_only.error().code, Code::kReadOnly) << read_only.error().ToString();

  server_->Exec("DROP TABLE t");
  const auto gone = writer->Write(BatchOf({"{\"n\":1}"}), After(1), {});
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().code, Code::kNotFound) << gone.error().ToString();
}

TEST_F(PostgresSinkTest, RefusalsAreRecordedBeforeTheWriteTakesEffect) {
  server_->Exec("CREATE TABLE t (n int)");
  auto sink = OpenTable();
  auto writer = OpenWriter(*sink);
  std::vector<std::string> recorded;
  ASSERT_TRUE(writer->RecordsRefusals([&](const Document& document, std::string_view) -> Status {
    EXPECT_EQ(server_->Exec("SELECT count(*) FROM t"), "0");
    recorded.emplace_back(document.body);
    return {};
  }));
  ASSERT_EQ(writer->Write(BatchOf({R"({"n":1})", R"({"n":"x"})", R"({"m":1})"}), After(3), {})
                .value()
                .size(),
            2);
  EXPECT_EQ(recorded, (std::vector<std::string>{R"({"n":"x"})", R"({"m":1})"}));
  EXPECT_EQ(server_->Exec("SELECT count(*) FROM t"), "1");
}

TEST_F(PostgresSinkTest, StandaloneItemLeavesNoProgress) {
  server_->Exec("CREATE TABLE t (n int)");
  auto sink = OpenTable();
  Fence fence = FenceOf(1);
  fence.alone = true;
  auto writer = sink->Open("c", fence).value();
  ASSERT_TRUE(writer->Write(BatchOf({R"({"n":1})"}), After(1), {}));
  ASSERT_TRUE(writer->Finish());
  ASSERT_TRUE(writer->Finish());
  EXPECT_EQ(server_->Exec("SELECT count(*) FROM muster_progress"), "0");
}

TEST(PostgresSinkUrl, WrongUrlsAreInvalid) {
  for (const char* url : {"postgresql://u@h/d#a.b.c", "postgresql://u@h/d?documents=maybe",
                          "postgresql://u:clear@h/d", "postgresql://u@h/d#%22x"}) {
    const auto sink = OpenSink(url, RealEnv());
    ASSERT_FALSE(sink) << url;
    EXPECT_EQ(sink.error().code, Code::kInvalid) << url;
    EXPECT_FALSE(sink.error().hint.empty()) << url;
  }
}

// Tables from before there were versions lack the column `format`.
TEST_F(PostgresSinkTest, AnOlderVersionsProgressIsUsedAndANewerOnesRefused) {
  const std::string columns =
      "CREATE TABLE muster_progress (run text, item text, incarnation text NOT NULL,"
      " epoch bigint NOT NULL, holder text NOT NULL, sealed boolean NOT NULL DEFAULT false,"
      " progress json, holder_pid integer, holder_since timestamptz,"
      " updated timestamptz NOT NULL DEFAULT now()";
  const std::string end = ", PRIMARY KEY (run, item))";
  server_->Exec("CREATE TABLE t (id int PRIMARY KEY);" + columns + end);
  EXPECT_EQ(WriteAll({R"({"id":1})"}), std::vector<std::string>{""});
  server_->Exec("DROP TABLE muster_progress");
  server_->Exec("TRUNCATE t");
  WriteAll({R"({"id":1})"});
  EXPECT_EQ(server_->Exec("SELECT max(format) FROM muster_progress"), "1");
  server_->Exec("DROP TABLE muster_progress");
  server_->Exec(columns + ", format integer NOT NULL DEFAULT 2" + end);
  const auto refused = OpenTable()->Open("c", FenceOf(9));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kIncompatible);
  EXPECT_NE(refused.error().message.find("table muster_progress has schema version 2"),
            std::string::npos)
      << refused.error().message;
}

}  // namespace
}  // namespace muster::pipeline
