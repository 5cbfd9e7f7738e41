#include "sql/sqlite.h"

#include <sqlite3.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "core/descriptor.h"
#include "core/interrupt.h"
#include "core/log.h"
#include "muster/env.h"
#include "sql/sqlite_holder.h"

namespace muster::sql {
namespace {

constexpr std::chrono::seconds kWorthSaying{2};

// `path` is for a file that could not be opened: SQLite does not know its name then.
Error ErrorOf(sqlite3* db, int rc, const std::string& path = "") {
  const std::string reason = db != nullptr ? sqlite3_errmsg(db) : sqlite3_errstr(rc);
  const char* file = db != nullptr ? sqlite3_db_filename(db, "main") : nullptr;
  const bool is_named = file != nullptr && *file != '\0';
  const std::string what = "SQLite file " + (is_named ? file : path) + ": " + reason;
  switch (rc & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED: {
      if (Interrupted()) return {Code::kCancelled, what + ": stopped on request"};
      const std::string holder = is_named ? SqliteLockHolder(file) : "";
      return {Code::kUnavailable, what,
              (holder.empty() ? "another process" : holder) +
                  " holds the file's write lock: let it finish or end it, then try again"};
    }
    case SQLITE_READONLY:
      return {Code::kReadOnly, what, "make the file and its folder writable, or name another"};
    case SQLITE_FULL:
      return {Code::kFull, what, "free some disk space, then run the same command again"};
    case SQLITE_CORRUPT:
      return {Code::kCorrupt, what,
              "restore the file from a backup, or move it away to start over"};
    case SQLITE_NOTADB:
      return {Code::kCorrupt, what, "this is not a SQLite database: name another file"};
    case SQLITE_CANTOPEN:
      if (db != nullptr && IsOutOfDescriptors(sqlite3_system_errno(db))) {
        return OutOfDescriptors(what);
      }
      if (db != nullptr && sqlite3_system_errno(db) == EROFS) {
        return {Code::kReadOnly, what + ": read-only file system",
                "name a file on a writable disk"};
      }
      if (db != nullptr && sqlite3_system_errno(db) == EACCES) {
        return {Code::kPermission, what, "check the permissions of the file and its folder"};
      }
      return {Code::kUnavailable, what, "check that the folder exists and may be written to"};
    case SQLITE_AUTH:
    case SQLITE_PERM:
      return {Code::kPermission, what, "check the permissions of the file and its folder"};
    case SQLITE_IOERR:
      // The write may or may not have reached the disk: the caller must check.
      return {Code::kUnknownOutcome, what, "check the disk and the system log"};
    case SQLITE_CONSTRAINT:
      return {Code::kConflict, what};
    case SQLITE_MISMATCH:
    case SQLITE_TOOBIG:
      return {Code::kInvalid, what};
    default:
      return {Code::kInternal, what};
  }
}

// Whether `sql` contains only spaces, comments and semicolons.
bool IsBlank(sqlite3* db, std::string_view sql) {
  while (!sql.empty()) {
    sqlite3_stmt* statement = nullptr;
    const char* rest = nullptr;
    const int rc =
        sqlite3_prepare_v2(db, sql.data(), static_cast<int>(sql.size()), &statement, &rest);
    sqlite3_finalize(statement);
    if (rc != SQLITE_OK || statement != nullptr) return false;
    sql.remove_prefix(static_cast<size_t>(rest - sql.data()));
  }
  return true;
}

}  // namespace

SqliteStatement::SqliteStatement(sqlite3* db, sqlite3_stmt* statement)
    : db_(db), statement_(statement) {}

SqliteStatement::SqliteStatement(SqliteStatement&& other) noexcept
    : db_(std::exchange(other.db_, nullptr)),
      statement_(std::exchange(other.statement_, nullptr)) {}

SqliteStatement& SqliteStatement::operator=(SqliteStatement&& other) noexcept {
  std::swap(db_, other.db_);
  std::swap(statement_, other.statement_);
  return *this;
}

SqliteStatement::~SqliteStatement() { sqlite3_finalize(statement_); }

void SqliteStatement::BindAt(int index, int64_t value) {
  sqlite3_bind_int64(statement_, index, value);
}

void SqliteStatement::BindAt(int index, double value) {
  sqlite3_bind_double(statement_, index, value);
}

void SqliteStatement::BindAt(int index, std::string_view text) {
  sqlite3_bind_text64(statement_, index, text.data(), text.size(), SQLITE_STATIC, SQLITE_UTF8);
}

void SqliteStatement::BindAt(int index, SqliteBlob blob) {
  // A null pointer would mean SQL NULL.
  const char* bytes = blob.bytes.data() == nullptr ? "" : blob.bytes.data();
  sqlite3_bind_blob64(statement_, index, bytes, blob.bytes.size(), SQLITE_STATIC);
}

void SqliteStatement::BindAt(int index, std::nullptr_t) { sqlite3_bind_null(statement_, index); }

void SqliteStatement::BindAt(int index, const std::optional<int64_t>& value) {
  if (value) {
    sqlite3_bind_int64(statement_, index, *value);
  } else {
    sqlite3_bind_null(statement_, index);
  }
}

void SqliteStatement::BindAt(int index, const std::optional<std::string>& text) {
  if (text) {
    BindAt(index, std::string_view(*text));
  } else {
    BindAt(index, nullptr);
  }
}

int SqliteStatement::Parameter(const std::string& name) const {
  return sqlite3_bind_parameter_index(statement_, name.c_str());
}

Result<bool> SqliteStatement::Step() {
  const int rc = sqlite3_step(statement_);
  if (rc == SQLITE_ROW) return true;
  if (rc == SQLITE_DONE) return false;
  const Error error = ErrorOf(db_, rc);
  Reset();
  return error;
}

Status SqliteStatement::Run() {
  for (;;) {
    MUSTER_ASSIGN(const bool row, Step());
    if (row) continue;
    Reset();
    return {};
  }
}

void SqliteStatement::Reset() { sqlite3_reset(statement_); }

int64_t SqliteStatement::Int(int column) const { return sqlite3_column_int64(statement_, column); }

SqliteStatement::Type SqliteStatement::TypeOf(int column) const {
  switch (sqlite3_column_type(statement_, column)) {
    case SQLITE_INTEGER:
      return Type::kInteger;
    case SQLITE_FLOAT:
      return Type::kFloat;
    case SQLITE_TEXT:
      return Type::kText;
    case SQLITE_BLOB:
      return Type::kBlob;
    default:
      return Type::kNull;
  }
}

int SqliteStatement::columns() const { return sqlite3_column_count(statement_); }

std::string_view SqliteStatement::ColumnName(int column) const {
  const char* name = sqlite3_column_name(statement_, column);
  return name == nullptr ? "" : name;
}

double SqliteStatement::Double(int column) const {
  return sqlite3_column_double(statement_, column);
}

std::string_view SqliteStatement::Blob(int column) const {
  const auto* bytes = static_cast<const char*>(sqlite3_column_blob(statement_, column));
  return {bytes, static_cast<size_t>(sqlite3_column_bytes(statement_, column))};
}

bool SqliteStatement::IsNull(int column) const {
  return sqlite3_column_type(statement_, column) == SQLITE_NULL;
}

std::string_view SqliteStatement::Text(int column) const {
  const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column));
  return {text, static_cast<size_t>(sqlite3_column_bytes(statement_, column))};
}

SqliteDb::SqliteDb(sqlite3* db, std::chrono::milliseconds busy_timeout)
    : db_(db), busy_timeout_(busy_timeout) {
  sqlite3_busy_handler(db_, WaitWhileBusy, this);
}

SqliteDb::~SqliteDb() { sqlite3_close_v2(db_); }

// SQLite's own handler sleeps in steps of up to 100 ms, far longer than a commit. No Backoff: that
// pauses for milliseconds, and keeps a count of its own.
int SqliteDb::WaitWhileBusy(void* self, int tries) {
  auto& db = *static_cast<SqliteDb*>(self);
  const MonoTime now = RealEnv().MonoNow();
  if (tries == 0) {
    db.busy_since_ = now;
    db.said_so_ = false;
  }
  if (now - db.busy_since_ >= db.busy_timeout_ || Interrupted()) return 0;
  if (now - db.busy_since_ >= kWorthSaying && !std::exchange(db.said_so_, true)) db.ReportBusy();
  const int step = std::min(tries, 6);
  RealEnv().Sleep(std::chrono::microseconds(100 << step), {});
  return 1;
}

void SqliteDb::ReportBusy() const {
  const char* file = sqlite3_db_filename(db_, "main");
  const std::string path = file != nullptr ? file : "";
  const std::string holder = SqliteLockHolder(path);
  Log(Level::kWarning, "waiting for the write lock of a SQLite file",
      {{"file", path}, {"holder", holder.empty() ? "another process" : holder}});
}

Result<std::unique_ptr<SqliteDb>> SqliteDb::Open(const std::string& path, Mode mode,
                                                 std::chrono::milliseconds busy_timeout) {
  const int flags = mode == Mode::kReadOnly   ? SQLITE_OPEN_READONLY
                    : mode == Mode::kExisting ? SQLITE_OPEN_READWRITE
                                              : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
  // SQLite's companion files inherit the permissions. Created without opening it: closing would
  // drop another thread's locks on it. Errors are ignored: SQLite reports them better.
  if (mode == Mode::kCreatePrivate && !path.empty() && path != ":memory:") {
    static_cast<void>(mknod(path.c_str(), S_IFREG | 0600, 0));
  }
  sqlite3* handle = nullptr;
  const int rc = sqlite3_open_v2(path.c_str(), &handle, flags | SQLITE_OPEN_NOMUTEX, nullptr);
  std::unique_ptr<SqliteDb> db(new SqliteDb(handle, busy_timeout));
  if (rc != SQLITE_OK) return ErrorOf(handle, rc, path);
  sqlite3_extended_result_codes(handle, 1);
  if (mode != Mode::kReadOnly) {
    MUSTER_ASSIGN(const std::string journal, db->UseWriteAheadLog());
    if (journal != "wal") {
      return Error{Code::kUnavailable,
                   "SQLite file " + path + ": cannot use write-ahead logging here",
                   "use a local disk: network file systems cannot share a SQLite file"};
    }
  }
  MUSTER_TRY(db->Execute("PRAGMA synchronous=FULL"));
  return db;
}

// SQLite does not call the busy handler when several connections change the mode of a new file
// concurrently: the loser has to retry.
Result<std::string> SqliteDb::UseWriteAheadLog() {
  const MonoTime give_up = RealEnv().MonoNow() + busy_timeout_;
  for (;;) {
    auto journal = QueryText("PRAGMA journal_mode=WAL");
    if (journal || journal.error().code != Code::kUnavailable || RealEnv().MonoNow() >= give_up) {
      return journal;
    }
    RealEnv().Sleep(std::chrono::milliseconds(1), {});
  }
}

Result<SqliteStatement> SqliteDb::Prepare(std::string_view sql) {
  sqlite3_stmt* statement = nullptr;
  const char* rest = nullptr;
  const int rc = sqlite3_prepare_v3(db_, sql.data(), static_cast<int>(sql.size()),
                                    SQLITE_PREPARE_PERSISTENT, &statement, &rest);
  if (rc != SQLITE_OK) return ErrorOf(db_, rc);
  SqliteStatement prepared(db_, statement);
  if (statement == nullptr) return Error{Code::kInvalid, "no SQL statement in an empty text"};
  // SQLite itself ignores anything after the first statement.
  if (!IsBlank(db_, {rest, static_cast<size_t>(sql.data() + sql.size() - rest)})) {
    return Error{Code::kInvalid, "more than one SQL statement in a text", "run them one by one"};
  }
  return prepared;
}

bool SqliteDb::InTransaction() const { return sqlite3_get_autocommit(db_) == 0; }

Status SqliteDb::Execute(const std::string& sql) {
  const int rc = sqlite3_exec(db_, sql.c_str(), nullptr, nullptr, nullptr);
  if (rc != SQLITE_OK) return ErrorOf(db_, rc);
  return {};
}

bool SqliteDb::HasMoved() const {
  int moved = 0;
  return sqlite3_file_control(db_, "main", SQLITE_FCNTL_HAS_MOVED, &moved) == SQLITE_OK &&
         moved != 0;
}

int SqliteDb::Changes() const { return sqlite3_changes(db_); }

int64_t SqliteDb::TotalChanges() const { return sqlite3_total_changes64(db_); }

Result<int64_t> SqliteDb::QueryInt(std::string_view sql) {
  MUSTER_ASSIGN(SqliteStatement statement, Prepare(sql));
  MUSTER_ASSIGN(const bool row, statement.Step());
  if (!row) return Error{Code::kNotFound, "no row for: " + std::string(sql)};
  return statement.Int(0);
}

Result<std::string> SqliteDb::QueryText(std::string_view sql) {
  MUSTER_ASSIGN(SqliteStatement statement, Prepare(sql));
  MUSTER_ASSIGN(const bool row, statement.Step());
  if (!row) return Error{Code::kNotFound, "no row for: " + std::string(sql)};
  return std::string(statement.Text(0));
}

Result<SqliteTransaction> SqliteTransaction::Begin(SqliteDb& db) {
  MUSTER_TRY(db.Execute("BEGIN IMMEDIATE"));
  return SqliteTransaction(db);
}

SqliteTransaction::SqliteTransaction(SqliteTransaction&& other) noexcept
    : db_(std::exchange(other.db_, nullptr)) {}

SqliteTransaction::~SqliteTransaction() {
  // SQLite rolls back by itself after some errors; then this does nothing.
  if (db_ != nullptr) (void)db_->Execute("ROLLBACK");
}

Status SqliteTransaction::Commit() {
  MUSTER_TRY(db_->Execute("COMMIT"));
  db_ = nullptr;
  return {};
}

std::string SqliteIdentifier(std::string_view name) {
  std::string quoted = "\"";
  for (const char c : name) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + '"';
}

}  // namespace muster::sql
