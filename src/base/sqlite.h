#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "muster/result.h"

struct sqlite3;
struct sqlite3_stmt;

namespace muster {

// Bytes that are no text.
struct SqliteBlob {
  std::string_view bytes;
};

// One prepared statement. Bind, Step until it says false, read the columns of each row, Reset. Not
// thread-safe; must not outlive its database.
class SqliteStatement {
 public:
  SqliteStatement() = default;
  SqliteStatement(sqlite3* db, sqlite3_stmt* statement);
  SqliteStatement(SqliteStatement&& other) noexcept;
  SqliteStatement& operator=(SqliteStatement&& other) noexcept;
  ~SqliteStatement();

  // Binds parameters 1, 2, … in order. Texts are not copied: they must live until Reset.
  template <class... Values>
  SqliteStatement& Bind(const Values&... values) {
    int index = 0;
    (BindAt(++index, values), ...);
    return *this;
  }

  // Binds one parameter, counted from 1.
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
  // The number of a parameter that is written with a name ("$1"); 0: there is none.
  int Parameter(const std::string& name) const;

  // True: a row is there to be read. False: the statement has ended (and, outside a
  // transaction, is durable).
  Result<bool> Step();

  // Runs a statement whose rows don't matter, and resets it.
  Status Run();

  // Ends the use of the current rows and makes the statement ready to be bound again.
  void Reset();

  // What a value of the current row is, whatever its column was declared as.
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

// A connection to one SQLite file in WAL mode with synchronous=FULL: what was committed survives a
// power cut. Not thread-safe; other connections and processes may use the file at the same time.
//
// Errors: kUnavailable (locked by others for longer than `busy_timeout`), kReadOnly, kFull,
// kCorrupt, kPermission, kUnknownOutcome (an I/O error while committing); kConflict (a constraint)
// and kInvalid (a value of the wrong type, or too large) are about the one statement.
class SqliteDb {
 public:
  // kCreate makes a file that is not there, kCreatePrivate one for its owner alone.
  enum class Mode { kCreate, kCreatePrivate, kExisting, kReadOnly };

  static Result<std::unique_ptr<SqliteDb>> Open(const std::string& path, Mode mode,
                                                std::chrono::milliseconds busy_timeout);
  ~SqliteDb();
  SqliteDb(const SqliteDb&) = delete;
  SqliteDb& operator=(const SqliteDb&) = delete;

  // kInvalid: there is no statement in `sql`, or more than one.
  Result<SqliteStatement> Prepare(std::string_view sql);

  // Runs one or more statements without parameters.
  Status Execute(const std::string& sql);

  bool InTransaction() const;

  // How many rows the last insert, update or delete changed.
  int Changes() const;

  // How many rows were changed since the connection was opened, those by triggers included.
  int64_t TotalChanges() const;

  // Whether the file has lost its name since it was opened: it was removed, renamed or replaced.
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
  std::chrono::steady_clock::time_point busy_since_{};
  bool said_so_ = false;
};

// A write transaction, rolled back unless it is committed. Takes the write lock at once, so that it
// never fails half way because somebody else wrote in between.
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

}  // namespace muster
