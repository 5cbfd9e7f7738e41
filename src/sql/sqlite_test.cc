#include "sql/sqlite.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stop_token>
#include <thread>

#include "core/file.h"
#include "core/interrupt.h"
#include "support/temporary_folder.h"

namespace muster::sql {
namespace {

using namespace std::chrono_literals;

class SqliteTest : public ::testing::Test {
 protected:
  std::string Path() const { return folder_.path() + "/test.db"; }
  Result<std::unique_ptr<SqliteDb>> Open(std::chrono::milliseconds busy_timeout = 5s) {
    return SqliteDb::Open(Path(), SqliteDb::Mode::kCreate, busy_timeout);
  }

  testing::TemporaryFolder folder_;
};

TEST_F(SqliteTest, CommitsAreDurableByDefault) {
  auto db = Open().value();
  EXPECT_EQ(db->QueryText("PRAGMA journal_mode").value(), "wal");
  EXPECT_EQ(db->QueryInt("PRAGMA synchronous").value(), 2);
}

TEST_F(SqliteTest, ValuesKeepTheirTypeWhateverTheDeclaredType) {
  using Type = SqliteStatement::Type;
  auto db = Open().value();
  auto select = db->Prepare("SELECT ?1, ?2, ?3, ?4, ?5, ?6").value();
  const std::string bytes("\0\xff", 2);
  select.Bind(int64_t{7}, 1.5, "text", SqliteBlob{bytes}, nullptr, SqliteBlob{});
  ASSERT_TRUE(select.Step().value());
  EXPECT_EQ(select.columns(), 6);
  EXPECT_EQ(select.TypeOf(0), Type::kInteger);
  EXPECT_EQ(select.TypeOf(1), Type::kFloat);
  EXPECT_EQ(select.Double(1), 1.5);
  EXPECT_EQ(select.TypeOf(2), Type::kText);
  EXPECT_EQ(select.TypeOf(3), Type::kBlob);
  EXPECT_EQ(select.Blob(3), bytes);
  EXPECT_EQ(select.TypeOf(4), Type::kNull);
  EXPECT_EQ(select.TypeOf(5), Type::kBlob);
  EXPECT_EQ(select.Blob(5), "");
}

TEST_F(SqliteTest, ConstraintViolationIsAConflictOrInvalid) {
  auto db = Open().value();
  ASSERT_TRUE(db->Execute("CREATE TABLE t (id INTEGER PRIMARY KEY, n TEXT NOT NULL)"));
  EXPECT_EQ(db->Execute("INSERT INTO t VALUES (1, NULL)").error().code, Code::kConflict);
  EXPECT_EQ(db->Execute("INSERT INTO t VALUES ('one', 'x')").error().code, Code::kInvalid);
}

TEST_F(SqliteTest, PreparesExactlyOneStatement) {
  auto db = *Open();
  ASSERT_TRUE(db->Execute("CREATE TABLE t (n INTEGER)"));
  for (const char* sql : {"SELECT 1", "SELECT 1;", " SELECT 1 ; ; -- done\n /* really */ "}) {
    EXPECT_TRUE(db->Prepare(sql)) << sql;
  }
  for (const char* sql : {"", " ", "-- nothing",
                          "INSERT INTO t VALUES (1); INSERT INTO t VALUES (2)", "SELECT 1; oops"}) {
    auto prepared = db->Prepare(sql);
    ASSERT_FALSE(prepared) << sql;
    EXPECT_EQ(prepared.error().code, Code::kInvalid) << sql;
  }
}

TEST(SqliteIdentifier, QuotesAnyText) { EXPECT_EQ(SqliteIdentifier("a\"b"), "\"a\"\"b\""); }

TEST_F(SqliteTest, BindsAndReadsEveryType) {
  auto db = Open().value();
  ASSERT_TRUE(db->Execute("CREATE TABLE t (i INTEGER, t TEXT, n INTEGER) STRICT"));
  auto insert = db->Prepare("INSERT INTO t VALUES (?, ?, ?)").value();
  const std::string text("a\0b\xc3\xa9", 5);
  ASSERT_TRUE(insert.Bind(int64_t{1} << 60, text, std::optional<int64_t>()).Run());
  EXPECT_EQ(db->Changes(), 1);
  auto select = db->Prepare("SELECT i, t, n FROM t").value();
  ASSERT_TRUE(select.Step().value());
  EXPECT_EQ(select.Int(0), int64_t{1} << 60);
  EXPECT_EQ(select.Text(1), text);
  EXPECT_TRUE(select.IsNull(2));
  EXPECT_FALSE(select.Step().value());
}

TEST_F(SqliteTest, UncommittedTransactionLeavesNothing) {
  auto db = Open().value();
  ASSERT_TRUE(db->Execute("CREATE TABLE t (i INTEGER)"));
  {
    auto transaction = SqliteTransaction::Begin(*db).value();
    ASSERT_TRUE(db->Execute("INSERT INTO t VALUES (1)"));
  }
  EXPECT_EQ(db->QueryInt("SELECT count(*) FROM t").value(), 0);
  auto transaction = SqliteTransaction::Begin(*db).value();
  ASSERT_TRUE(db->Execute("INSERT INTO t VALUES (1)"));
  ASSERT_TRUE(transaction.Commit());
  EXPECT_EQ(db->QueryInt("SELECT count(*) FROM t").value(), 1);
}

TEST_F(SqliteTest, LockedFileIsAwaitedAndThenUnavailable) {
  auto holder = Open().value();
  auto other = Open(20ms).value();
  auto held = SqliteTransaction::Begin(*holder).value();
  auto refused = SqliteTransaction::Begin(*other);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kUnavailable);
}

TEST_F(SqliteTest, InterruptEndsTheWaitForALock) {
  auto holder = Open().value();
  auto other = Open(60s).value();
  auto held = SqliteTransaction::Begin(*holder).value();
  std::stop_source stop;
  std::jthread stopper([&] {
    std::this_thread::sleep_for(50ms);
    stop.request_stop();
  });
  const InterruptScope scope(stop.get_token());
  const auto start = std::chrono::steady_clock::now();
  auto refused = SqliteTransaction::Begin(*other);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kCancelled) << refused.error().ToString();
  EXPECT_LT(std::chrono::steady_clock::now() - start, 20s);
}

// Not reported as a problem of the file or its folder.
TEST_F(SqliteTest, ShortageOfDescriptorsIsReportedAsSuch) {
  const auto opened = [&] {
    rlimit before{};
    getrlimit(RLIMIT_NOFILE, &before);
    const rlimit none{3, before.rlim_max};
    setrlimit(RLIMIT_NOFILE, &none);
    auto db = Open();
    setrlimit(RLIMIT_NOFILE, &before);
    return db;
  }();
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, Code::kUnavailable) << opened.error().ToString();
  EXPECT_NE(opened.error().hint.find("ulimit -n"), std::string::npos) << opened.error().ToString();
  EXPECT_NE(FileError("open", "a", EMFILE).hint.find("ulimit -n"), std::string::npos);
}

// A child holds the lock. Open here only afterwards, or the child would inherit this process's
// file.
TEST_F(SqliteTest, HolderOfTheWriteLockIsNamed) {
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    const auto db = Open().value();
    const bool locked = db->Execute("CREATE TABLE t (x); BEGIN IMMEDIATE").has_value();
    static_cast<void>(write(ready[1], locked ? "y" : "n", 1));
    raise(SIGSTOP);
    _exit(0);
  }
  char answer = 'n';
  ASSERT_EQ(read(ready[0], &answer, 1), 1);
  ASSERT_EQ(answer, 'y');
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, WUNTRACED), child);
  ASSERT_TRUE(WIFSTOPPED(status));
  const auto db = Open(50ms);
  const Status written = db ? (*db)->Execute("INSERT INTO t VALUES (1)") : Status(db.error());
  kill(child, SIGKILL);
  waitpid(child, &status, 0);
  close(ready[0]);
  close(ready[1]);
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code, Code::kUnavailable);
  EXPECT_NE(written.error().hint.find("process " + std::to_string(child)), std::string::npos)
      << written.error().hint;
  EXPECT_NE(written.error().hint.find("which is stopped"), std::string::npos)
      << written.error().hint;
}

TEST_F(SqliteTest, FileThatIsNotADatabaseIsCorruptAndLeftAlone) {
  const std::string text(5'000, 'x');
  std::ofstream(Path()) << text;
  auto db = Open();
  ASSERT_FALSE(db);
  EXPECT_EQ(db.error().code, Code::kCorrupt);
  EXPECT_NE(db.error().message.find(Path()), std::string::npos);
  EXPECT_FALSE(db.error().hint.empty());
  EXPECT_EQ(std::filesystem::file_size(Path()), text.size());
}

TEST_F(SqliteTest, DamagedPageIsCorrupt) {
  {
    auto db = Open().value();
    ASSERT_TRUE(db->Execute("CREATE TABLE t (i INTEGER PRIMARY KEY, t TEXT)"));
    ASSERT_TRUE(
        db->Execute("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 999)"
                    " INSERT INTO t SELECT i, hex(randomblob(50)) FROM n"));
  }
  std::fstream file(Path(), std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(2 * 4096);
  file << std::string(4096, '\xff');
  file.close();
  auto db = Open().value();
  auto sum = db->QueryInt("SELECT sum(length(t)) FROM t");
  ASSERT_FALSE(sum);
  EXPECT_EQ(sum.error().code, Code::kCorrupt);
}

TEST_F(SqliteTest, MissingFolderIsUnavailable) {
  auto db = SqliteDb::Open(folder_.path() + "/no/such.db", SqliteDb::Mode::kCreate, 1s);
  ASSERT_FALSE(db);
  EXPECT_EQ(db.error().code, Code::kUnavailable);
}

TEST_F(SqliteTest, MissingFileIsNotCreatedWhenItMustExist) {
  EXPECT_FALSE(SqliteDb::Open(Path(), SqliteDb::Mode::kExisting, 1s));
  EXPECT_FALSE(std::filesystem::exists(Path()));
}

TEST_F(SqliteTest, ReadOnlyConnectionRefusesWrites) {
  ASSERT_TRUE(Open().value()->Execute("CREATE TABLE t (i INTEGER)"));
  auto db = SqliteDb::Open(Path(), SqliteDb::Mode::kReadOnly, 1s).value();
  auto written = db->Execute("INSERT INTO t VALUES (1)");
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code, Code::kReadOnly);
}

// max_page_count simulates a full disk: the same error, at a size we choose.
TEST_F(SqliteTest, FullDiskAppliesNothing) {
  auto db = Open().value();
  ASSERT_TRUE(db->Execute("CREATE TABLE t (t TEXT); PRAGMA max_page_count = 4"));
  auto written = db->Execute("INSERT INTO t VALUES (hex(randomblob(100000)))");
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code, Code::kFull);
  EXPECT_EQ(db->QueryInt("SELECT count(*) FROM t").value(), 0);
}

}  // namespace
}  // namespace muster::sql
