#pragma once

#include <functional>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "muster/env.h"
#include "muster/result.h"
#include "sql/duckdb.h"
#include "task/data/load_fence.h"

namespace muster::task {

// Begins the message about a violated foreign key, on every database.
inline constexpr std::string_view kForeignKeyViolated = "foreign key violated: ";
inline constexpr const char* kForeignKeyHint =
    "the parent's rows are missing or were rejected, or a later rank loads them: check the ranks "
    "that this one needs";

// A table that a script loads.
struct TargetTable {
  std::string name;  // for messages: "identity.people"
  std::string sql;   // quoted
  std::vector<std::string> columns;
  std::vector<std::string> key;  // the primary one
};

// Rows of a DuckDB table that match `where`. The target has all its columns.
struct RowsToLoad {
  std::string from;
  std::string where;
  int64_t last_rowid = -1;
  std::vector<std::string> columns;
  std::vector<std::string> types;                   // DuckDB's
  std::function<void(int64_t rows)> progress = {};  // how many have been read so far
};

// Rows of a table whose parent rows are missing.
struct KeyViolation {
  std::string child;  // as in TargetTable::name
  std::string parent;
  int64_t rows = 0;
  std::string example;  // "site_id = 'a01'"

  std::string ToString() const;
};

// The check of one table's foreign keys.
struct KeyCheck {
  int64_t keys = 0;
  std::vector<KeyViolation> violations;
};

// The database that a script loads into, in one transaction from the first Load to Commit; without
// Commit nothing is changed. Rows replace those with the same key. Used by one thread.
class TransformTarget {
 public:
  virtual ~TransformTarget() = default;

  // kNotFound: no such table. An empty schema is the database's default.
  virtual Result<TargetTable> Describe(const std::string& schema, const std::string& table) = 0;

  // Must precede Load. Takes the fence; the result if the call was committed before: then there is
  // nothing to load. kLeaseLost: as in CheckOpen.
  virtual Result<std::optional<std::string>> Take(const LoadFence& fence,
                                                  const std::stop_token& stop) = 0;

  // The number of rows loaded. kLeaseLost: another session has taken the fence since. kInvalid: a
  // row breaks a constraint.
  virtual Result<int64_t> Load(sql::DuckDb& db, const RowsToLoad& rows, const TargetTable& table,
                               const std::stop_token& stop) = 0;

  // Commits everything loaded, and the call's result. kConflict, beginning with kForeignKeyViolated
  // and naming the parent table, here or in Load. kUnknownOutcome: call Take on another connection.
  virtual Status Commit(const std::string& result) = 0;

  // Finds rows without a parent, for every foreign key of the table, enforced or not.
  virtual Result<KeyCheck> CheckKeys(const TargetTable& table) = 0;
};

// By URL, sqlite: or postgresql:; secrets are expanded. `on_wait` gets what a slow call waits for.
// Of sqlite:FILE?tables=SQL-FILE, a file that does not exist is created with the tables of that
// SQL, which is read only then.
Result<std::unique_ptr<TransformTarget>> OpenTransformTarget(const std::string& url, Env& env,
                                                             const OnWait& on_wait = {});
Status CheckSqliteTarget(const std::string& path);
Result<std::unique_ptr<TransformTarget>> OpenSqliteTarget(const std::string& path, Env& env,
                                                          const OnWait& on_wait);
Result<std::unique_ptr<TransformTarget>> OpenPostgresTarget(const std::string& uri, Env& env,
                                                            const OnWait& on_wait);

// Calls `row` with all rows, reading a page at a time. `as` returns the expression that reads a
// column, given its quoted name and type, as one of the types of DuckDb::Query.
using ColumnAs = std::function<std::string(const std::string& column, const std::string& type)>;
Status ForEachRow(sql::DuckDb& db, const RowsToLoad& rows, const ColumnAs& as,
                  const std::stop_token& stop, const sql::DuckDb::OnRow& row);

// How most columns are read: as text; nested values as JSON.
std::string ColumnAsText(const std::string& column, const std::string& type);

// "a", "b", …, quoted by `quote`.
std::string ColumnList(const std::vector<std::string>& columns,
                       std::string (*quote)(std::string_view));

// " ON CONFLICT (key) DO UPDATE SET …", for SQLite and PostgreSQL. An unchanged row counts as
// loaded.
std::string UpsertClause(const RowsToLoad& rows, const TargetTable& table,
                         std::string (*quote)(std::string_view));

}  // namespace muster::task
