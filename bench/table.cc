#include "table.h"

#include <sqlite3.h>

#include <algorithm>

#include "raw_sqlite.h"
#include "side.h"

namespace muster::bench {
namespace {

// A work item's body is about this long.
constexpr const char* kBody =
    R"('{"index":"orders","shard":' || n || ',"start":0,"watermark":"0000000000000000","read":0,)"
    R"("written":0,"skipped":0,"failed":0}')";

class Sqlite final : public Table {
 public:
  Sqlite(const std::string& path, const std::string& space)
      : db_(OpenSqlite(path)), table_(space + "_records") {
    // Nothing is measured on this connection.
    ExecuteSqlite(*db_, "PRAGMA synchronous=OFF");
  }

  void Fill(int64_t finished, int64_t due) override {
    ExecuteSqlite(*db_, "DELETE FROM " + table_);
    // In pieces, so that the write-ahead log stays small.
    constexpr int64_t kPiece = 1'000'000;
    for (int64_t first = 1; first <= finished; first += kPiece) {
      Insert(first, std::min(finished, first + kPiece - 1), "NULL");
    }
    Insert(finished + 1, finished + due, std::to_string(oldest_due_ms_) + " + n");
    oldest_due_ms_ += finished + due;
    ExecuteSqlite(*db_, "PRAGMA wal_checkpoint(TRUNCATE)");
  }

  int64_t Finished() override {
    const SqliteQuery count =
        PrepareSqlite(*db_, "SELECT count(*) FROM " + table_ + " WHERE due IS NULL");
    StepSqlite(*count);
    return sqlite3_column_int64(count.get(), 0);
  }

 private:
  void Insert(int64_t first, int64_t last, const std::string& due) {
    if (first > last) return;
    ExecuteSqlite(*db_, "WITH RECURSIVE numbers(n) AS (SELECT " + std::to_string(first) +
                            " UNION ALL SELECT n + 1 FROM numbers WHERE n < " +
                            std::to_string(last) + ") INSERT INTO " + table_ +
                            " (kind, queue, key, version, due, owner, epoch, attempt, claim_id,"
                            " body) SELECT '" +
                            kKind + "', '" + kQueue + "', printf('orders__%012d__0', n), 1, " +
                            due + ", '', 0, 0, '', " + kBody + " FROM numbers");
  }

  const SqliteHandle db_;
  const std::string table_;
  int64_t oldest_due_ms_ = 0;
};

class Postgres final : public Table {
 public:
  Postgres(const testing::PostgresServer& server, const std::string& space)
      : server_(server), table_(space + ".records") {}

  void Fill(int64_t finished, int64_t due) override {
    server_.Exec("TRUNCATE " + table_);
    Insert(1, finished, "NULL");
    Insert(finished + 1, finished + due,
           "to_timestamp((" + std::to_string(oldest_due_ms_) + " + n) / 1000.0)");
    oldest_due_ms_ += finished + due;
    server_.Exec("VACUUM ANALYZE " + table_);
    server_.Exec("CHECKPOINT");
  }

  int64_t Finished() override {
    return std::stoll(server_.Exec("SELECT count(*) FROM " + table_ + " WHERE due IS NULL"));
  }

 private:
  void Insert(int64_t first, int64_t last, const std::string& due) {
    server_.Exec("INSERT INTO " + table_ +
                 " (kind, queue, key, version, due, owner, attempt, body) SELECT '" + kKind +
                 "', '" + kQueue + "', 'orders__' || lpad(n::text, 12, '0') || '__0', 1, " + due +
                 ", '', 0, (" + kBody + ")::json FROM generate_series(" + std::to_string(first) +
                 "::bigint, " + std::to_string(last) + ") AS n");
  }

  const testing::PostgresServer& server_;
  const std::string table_;
  int64_t oldest_due_ms_ = 0;
};

}  // namespace

std::unique_ptr<Table> SqliteTable(const std::string& path, const std::string& space) {
  return std::make_unique<Sqlite>(path, space);
}

std::unique_ptr<Table> PostgresTable(const testing::PostgresServer& server,
                                     const std::string& space) {
  return std::make_unique<Postgres>(server, space);
}

}  // namespace muster::bench
