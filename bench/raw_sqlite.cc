#include "raw_sqlite.h"

#include <sqlite3.h>

#include <stdexcept>
#include <string_view>
#include <vector>

namespace muster::bench {
namespace {

[[noreturn]] void Fail(sqlite3* db, const std::string& what) {
  throw std::runtime_error(what + ": " + sqlite3_errmsg(db));
}

int64_t NowMs() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

class Raw final : public Side {
 public:
  Raw(const std::string& path, const std::string& space)
      : db_(OpenSqlite(path)),
        claim_(PrepareSqlite(
            *db_, "UPDATE " + space +
                      "_records SET owner = ?6, claim_id = ?7, due = ?1, epoch = epoch + 1,"
                      " attempt = attempt + 1, version = version + 1"
                      " WHERE rowid IN (SELECT rowid FROM " +
                      space +
                      "_records WHERE kind = ?2 AND queue = ?3 AND due <= ?4"
                      " ORDER BY due LIMIT ?5) RETURNING key, version, body")),
        complete_(PrepareSqlite(*db_, "UPDATE " + space +
                                          "_records SET due = NULL, version = version + 1,"
                                          " body = ?4 WHERE kind = ?1 AND key = ?2"
                                          " AND version = ?3")),
        begin_(PrepareSqlite(*db_, "BEGIN IMMEDIATE")),
        commit_(PrepareSqlite(*db_, "COMMIT")) {}

  Outcome Run(const Load& load) override {
    Outcome outcome;
    std::vector<Taken> taken;
    taken.reserve(static_cast<size_t>(load.batch));
    Claim(1, taken);  // reads the schema and the first pages
    const auto begin = std::chrono::steady_clock::now();
    for (int turn = 0; turn < load.workers * load.turns; ++turn) {
      Claim(load.batch, taken);
      Complete(taken);
      outcome.completed += static_cast<int64_t>(taken.size());
    }
    outcome.elapsed = std::chrono::steady_clock::now() - begin;
    return outcome;
  }

 private:
  struct Taken {
    std::string key;
    int64_t version;
    std::string body;
  };

  static void BindText(sqlite3_stmt& statement, int index, std::string_view text) {
    sqlite3_bind_text(&statement, index, text.data(), static_cast<int>(text.size()), SQLITE_STATIC);
  }

  static std::string Text(sqlite3_stmt& row, int column) {
    const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(&row, column));
    return {text, static_cast<size_t>(sqlite3_column_bytes(&row, column))};
  }

  void Claim(int limit, std::vector<Taken>& taken) {
    taken.clear();
    const int64_t now = NowMs();
    sqlite3_bind_int64(claim_.get(), 1, now + kLeaseMs);
    BindText(*claim_, 2, kKind);
    BindText(*claim_, 3, kQueue);
    sqlite3_bind_int64(claim_.get(), 4, now);
    sqlite3_bind_int(claim_.get(), 5, limit);
    BindText(*claim_, 6, kOwner);
    BindText(*claim_, 7, kRawClaimId);
    while (StepSqlite(*claim_)) {
      taken.push_back({Text(*claim_, 0), sqlite3_column_int64(claim_.get(), 1), Text(*claim_, 2)});
    }
    sqlite3_reset(claim_.get());
  }

  void Complete(const std::vector<Taken>& taken) {
    if (taken.size() > 1) RunOnce(*begin_);
    for (const Taken& record : taken) {
      BindText(*complete_, 1, kKind);
      BindText(*complete_, 2, record.key);
      sqlite3_bind_int64(complete_.get(), 3, record.version);
      BindText(*complete_, 4, record.body);
      RunOnce(*complete_);
    }
    if (taken.size() > 1) RunOnce(*commit_);
  }

  static void RunOnce(sqlite3_stmt& statement) {
    StepSqlite(statement);
    sqlite3_reset(&statement);
  }

  const SqliteHandle db_;
  const SqliteQuery claim_, complete_, begin_, commit_;
};

}  // namespace

void CloseSqlite::operator()(sqlite3* db) const { sqlite3_close(db); }

void CloseSqlite::operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }

SqliteHandle OpenSqlite(const std::string& path) {
  sqlite3* handle = nullptr;
  const int rc =
      sqlite3_open_v2(path.c_str(), &handle, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, nullptr);
  SqliteHandle db(handle);
  if (rc != SQLITE_OK) Fail(handle, path);
  sqlite3_busy_timeout(handle, 10'000);
  ExecuteSqlite(*db, "PRAGMA journal_mode=WAL");
  ExecuteSqlite(*db, "PRAGMA synchronous=FULL");
  return db;
}

void ExecuteSqlite(sqlite3& db, const std::string& sql) {
  if (sqlite3_exec(&db, sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) Fail(&db, sql);
}

SqliteQuery PrepareSqlite(sqlite3& db, const std::string& sql) {
  sqlite3_stmt* statement = nullptr;
  if (sqlite3_prepare_v3(&db, sql.c_str(), -1, SQLITE_PREPARE_PERSISTENT, &statement, nullptr) !=
      SQLITE_OK) {
    Fail(&db, sql);
  }
  return SqliteQuery(statement);
}

bool StepSqlite(sqlite3_stmt& statement) {
  const int rc = sqlite3_step(&statement);
  if (rc == SQLITE_ROW) return true;
  if (rc == SQLITE_DONE) return false;
  Fail(sqlite3_db_handle(&statement), sqlite3_sql(&statement));
}

std::unique_ptr<Side> RawSqlite(const std::string& path, const std::string& space) {
  return std::make_unique<Raw>(path, space);
}

}  // namespace muster::bench
