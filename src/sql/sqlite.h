#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "muster/env.h"
#include "muster/result.h"

struct sqlite3;
struct sqlite3_stmt;

namespace muster::sql {

// Binary data.
struct SqliteBlob {
  std::string_view bytes;
};

// A prepared statement. Bind, Step until it returns false, read each row's columns, Reset. Not
// thread-safe; must not outlive its database.
class SqliteStatement {
 public:
  SqliteStatement() = default;
  SqliteStatement(sqlite3* db, sqlite3_stmt* statement);
  SqliteStatement(SqliteStatement&& other) noexcept;
  SqliteStatement& operator=(SqliteStatement&& other) noexcept;
  ~SqliteStatement();

  // Binds parameters 1, 2, … in order. Text is not copied: it must live until Reset.
  template <class... Values>
  SqliteStatement& Bind(const Values&... values) {
    int index = 0;
    (BindAt(++index, values), ...);
    return *this;
  }

  // Binds one parameter, numbered from 1.
  void BindAt(int index, int64_t value);
  void BindAt(int index, int value) { BindAt(index, static_cast<int64_t>(value)); }
  void BindAt(int index, double value);
  void BindAt(int index, std::string_view text);
  void BindAt(int index, const std::string& text) { BindAt(index, std::string_view(text)); }
  void BindAt(int index, const char* text) { BindAt(index, std::string_view(text)); }
  void BindAt(int index, SqliteBlob blob);
  void BindAt(int index, std::nullptr_t);  // NULL
  void BindAt(int index, const std::optional<int64_t>& value);
  // None: NULL. A name that takes a string as well would bind the text of a temporary.
  void BindAt(int index, const std::optional<std::string>& text);
  // The number of a named parameter ("$1"); 0: none.
  int Parameter(const std::string& name) const;

  // True: a row is available. False: the statement has finished (and, outside a transaction, is
  // durable).
  Result<bool> Step();

  // Runs a statement, discarding rows, and resets it.
  Status Run();

  // Discards the current rows and readies the statement for binding.
  void Reset();

  // The type of a value in the current row, whatever its column's declared type.
  enum class Type { kNull, kInteger, kFloat, kText, kBlob };
  Type TypeOf(int column) const;
  int columns() const;
  std::string_view ColumnName(int column) const;

  int64_t Int(int column) const;
  double Double(int column) const;
  std::string_view Blob(int column) const;  // valid until the next Step or Reset
  bool IsNull(int column) const;
  std::string_view Text(int column) const;  // valid until the next Step or Reset

 private:
  sqlite3* db_ = nullptr;
  sqlite3_stmt* statement_ = nullptr;
};

// A connection to one SQLite file in WAL mode with synchronous=FULL: commits survive a power
// failure. Not thread-safe; other connections and processes may use the file concurrently.
//
// Errors: kUnavailable (locked by others for longer than `busy_timeout`), kReadOnly, kFull,
// kCorrupt, kPermission, kUnknownOutcome (an I/O error while committing); kConflict (a constraint)
// and kInvalid (a value of the wrong type, or too large) concern the one statement.
class SqliteDb {
 public:
  // kCreate creates a missing file, kCreatePrivate for its owner only.
  enum class Mode { kCreate, kCreatePrivate, kExisting, kReadOnly };

  static Result<std::unique_ptr<SqliteDb>> Open(const std::string& path, Mode mode,
                                                std::chrono::milliseconds busy_timeout);
  ~SqliteDb();
  SqliteDb(const SqliteDb&) = delete;
  SqliteDb& operator=(const SqliteDb&) = delete;

  // kInvalid: not exactly one statement in `sql`.
  Result<SqliteStatement> Prepare(std::string_view sql);

  // Runs one or more statements without parameters.
  Status Execute(const std::string& sql);

  bool InTransaction() const;

  // Rows changed by the last insert, update or delete.
  int Changes() const;

  // Rows changed since the connection was opened, including by triggers.
  int64_t TotalChanges() const;

  // Whether the file was removed, renamed or replaced since it was opened.
  bool HasMoved() const;

  // The first column of the first row of a query.
  Result<int64_t> QueryInt(std::string_view sql);
  Result<std::string> QueryText(std::string_view sql);

 private:
  SqliteDb(sqlite3* db, std::chrono::milliseconds busy_timeout);
  static int WaitWhileBusy(void* self, int tries);
  void ReportBusy() const;
  Result<std::string> UseWriteAheadLog();

  sqlite3* db_;
  const std::chrono::milliseconds busy_timeout_;
  MonoTime busy_since_{};
  bool said_so_ = false;
};

// A write transaction, rolled back unless committed. Takes the write lock up front, so that it
// never fails half way because of a concurrent write.
class SqliteTransaction {
 public:
  static Result<SqliteTransaction> Begin(SqliteDb& db);
  SqliteTransaction(SqliteTransaction&& other) noexcept;
  SqliteTransaction& operator=(SqliteTransaction&&) = delete;
  ~SqliteTransaction();

  Status Commit();

 private:
  explicit SqliteTransaction(SqliteDb& db) : db_(&db) {}
  SqliteDb* db_;
};

// `name` as an SQL identifier, in double quotes.
std::string SqliteIdentifier(std::string_view name);

}  // namespace muster::sql
