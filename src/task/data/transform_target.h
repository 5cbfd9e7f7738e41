#pragma once

#include <functional>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "muster/result.h"
#include "sql/duckdb.h"
#include "task/data/load_fence.h"

namespace muster::task {

// A violated foreign key begins with this, whatever the database.
inline constexpr std::string_view kForeignKeyViolated = "foreign key violated: ";
inline constexpr const char* kForeignKeyHint =
    "the parent's rows are missing or were rejected, or it is loaded in a later rank: check the "
    "ranks that this one needs";

// A table that a script loads.
struct TargetTable {
  std::string name;  // for a person: "identity.people"
  std::string sql;   // quoted
  std::vector<std::string> columns;
  std::vector<std::string> key;  // the primary one
};

// A table of DuckDB's with rows to load, all of whose columns the target has. Rows are those with
// `where`.
struct RowsToLoad {
  std::string from;
  std::string where;
  int64_t last_rowid = -1;
  std::vector<std::string> columns;
  std::vector<std::string> types;                   // DuckDB's
  std::function<void(int64_t rows)> progress = {};  // how many have been read so far
};

// Rows of a table whose parents are not there.
struct KeyViolation {
  std::string child;  // as in TargetTable::name
  std::string parent;
  int64_t rows = 0;
  std::string example;  // "site_id = 'a01'"

  std::string ToString() const;
};

// What became of the foreign keys of one table.
struct KeyCheck {
  int64_t keys = 0;
  std::vector<KeyViolation> violations;
};

// The database that a script loads into: one transaction, from the first Load to Commit; without
// Commit nothing has happened. Rows replace those with the same key. Used by one thread.
class TransformTarget {
 public:
  virtual ~TransformTarget() = default;

  // kNotFound: there is no such table. An empty schema is the database's own default.
  virtual Result<TargetTable> Describe(const std::string& schema, const std::string& table) = 0;

  // To be called before Load: who may load, and what was loaded. The result if the call has been
  // committed before: then there is nothing to load. kLeaseLost: as in CheckOpen.
  virtual Result<std::optional<std::string>> Take(const LoadFence& fence,
                                                  const std::stop_token& stop) = 0;

  // How many rows the database has taken. kLeaseLost: another session has taken the fence since.
  virtual Result<int64_t> Load(sql::DuckDb& db, const RowsToLoad& rows, const TargetTable& table,
                               const std::stop_token& stop) = 0;

  // Commits all that was loaded, and with it the call's result. kConflict, beginning with
  // kForeignKeyViolated, here or in Load: with the parent table. kUnknownOutcome: only Take on
  // another connection, now or by a later try, can tell.
  virtual Status Commit(const std::string& result) = 0;

  // Looks for rows without a parent, by every foreign key that the table declares, enforced or not.
  virtual Result<KeyCheck> CheckKeys(const TargetTable& table) = 0;
};

// By URL, sqlite: or postgresql:; secrets are expanded. `on_wait` is told what a call waits for
// that takes long; empty: nothing is.
Result<std::unique_ptr<TransformTarget>> OpenTransformTarget(const std::string& url,
                                                             const OnWait& on_wait = {});
Result<std::unique_ptr<TransformTarget>> OpenSqliteTarget(const std::string& path,
                                                          const OnWait& on_wait);
Result<std::unique_ptr<TransformTarget>> OpenPostgresTarget(const std::string& uri,
                                                            const OnWait& on_wait);

// Calls `row` with all rows, a page at a time. `as` says how a column is read, by its name (quoted)
// and type, as one of the types that DuckDb::Query takes.
using ColumnAs = std::function<std::string(const std::string& column, const std::string& type)>;
Status ForEachRow(sql::DuckDb& db, const RowsToLoad& rows, const ColumnAs& as,
                  const std::stop_token& stop, const sql::DuckDb::OnRow& row);

// How nearly all columns are read: as text, what is nested as JSON.
std::string ColumnAsText(const std::string& column, const std::string& type);

// "a", "b", … as `quote` writes them.
std::string ColumnList(const std::vector<std::string>& columns,
                       std::string (*quote)(std::string_view));

// " ON CONFLICT (key) DO UPDATE SET …", as SQLite and PostgreSQL have it. A row that is there
// already counts as taken.
std::string UpsertClause(const RowsToLoad& rows, const TargetTable& table,
                         std::string (*quote)(std::string_view));

}  // namespace muster::task
