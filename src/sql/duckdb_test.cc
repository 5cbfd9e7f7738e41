#include "sql/duckdb.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "support/temporary_folder.h"

namespace muster::sql {
namespace {

class DuckDbTest : public ::testing::Test {
 protected:
  void SetUp() override {
    setenv("TZ", "America/New_York", 1);
    auto opened =
        DuckDb::Open({.spill_folder = folder_.path() + "/spill", .folders = {folder_.path()}});
    ASSERT_TRUE(opened) << opened.error().ToString();
    db_ = *std::move(opened);
  }

  std::string Rows(const std::string& sql) {
    std::string text;
    const Status done = db_->Query(sql, [&](std::span<const DuckValue> values) -> Status {
      for (const DuckValue& value : values) {
        if (std::holds_alternative<int64_t>(value))
          text += std::to_string(std::get<int64_t>(value));
        if (std::holds_alternative<double>(value)) text += std::to_string(std::get<double>(value));
        if (std::holds_alternative<std::string_view>(value))
          text += std::get<std::string_view>(value);
        text += '|';
      }
      text += '\n';
      return {};
    });
    return done ? text : done.error().ToString();
  }

  testing::TemporaryFolder folder_;
  std::unique_ptr<DuckDb> db_;
};

TEST_F(DuckDbTest, ReadsAllThreeTypesAndNulls) {
  EXPECT_EQ(Rows("SELECT 7::BIGINT, 0.5::DOUBLE, 'short', 'a text of more than twelve bytes', NULL"
                 "::VARCHAR"),
            "7|0.500000|short|a text of more than twelve bytes||\n");
}

TEST_F(DuckDbTest, ManyRowsArriveInOrder) {
  int64_t next = 0;
  ASSERT_TRUE(db_->Query("SELECT range::BIGINT FROM range(10000)",
                         [&](std::span<const DuckValue> values) -> Status {
                           EXPECT_EQ(std::get<int64_t>(values[0]), next++);
                           return {};
                         }));
  EXPECT_EQ(next, 10000);
}

TEST_F(DuckDbTest, KnowsWhichStatementsReturnRows) {
  EXPECT_TRUE(*db_->IsQuery("WITH a AS (SELECT 1) SELECT * FROM a"));
  EXPECT_TRUE(*db_->IsQuery("FROM range(3)"));
  EXPECT_FALSE(*db_->IsQuery("CREATE TABLE t (a INT)"));
  EXPECT_EQ(db_->IsQuery("SELEC 1").error().code, Code::kInvalid);
}

TEST_F(DuckDbTest, FilesInOtherFoldersAreInaccessible) {
  std::ofstream(folder_.path() + "/in.json") << "{\"a\":1}\n";
  EXPECT_EQ(Rows("SELECT a FROM read_json(" + DuckLiteral(folder_.path() + "/in.json") + ")"),
            "1|\n");
  EXPECT_NE(Rows("SELECT content FROM read_text('/etc/hostname')").find("Permission"),
            std::string::npos);
  const Status out = db_->Execute("COPY (SELECT 1) TO '/tmp/muster-duckdb-test-out.csv'");
  ASSERT_FALSE(out);
  EXPECT_FALSE(std::filesystem::exists("/tmp/muster-duckdb-test-out.csv"));
  EXPECT_FALSE(db_->Execute("SET enable_external_access = true"));
  EXPECT_FALSE(db_->Execute("INSTALL httpfs"));
}

TEST_F(DuckDbTest, StopEndsALongStatement) {
  std::stop_source stopping;
  stopping.request_stop();
  const DuckInterrupter interrupter(*db_, stopping.get_token());
  const Status ended = db_->Execute(
      "SELECT count(*) FROM range(1000000000) a, range(1000000000) b WHERE a.range = b.range + 1");
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().code, Code::kCancelled) << ended.error().ToString();
}

TEST_F(DuckDbTest, TimesAreInUtcWhateverTheMachinesZone) {
  EXPECT_EQ(Rows("SELECT '2024-01-01T10:00:00+02:00'::TIMESTAMPTZ::VARCHAR"),
            "2024-01-01 08:00:00+00|\n");
}

TEST_F(DuckDbTest, NamesAndTextsAreQuoted) {
  EXPECT_EQ(Rows("SELECT " + DuckLiteral("it's") + " AS " + DuckIdentifier("a\"b")), "it's|\n");
}

}  // namespace
}  // namespace muster::sql
