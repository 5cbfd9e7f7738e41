#include "task/data/transform_target.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <system_error>

#include "core/file.h"
#include "core/secrets.h"
#include "core/url.h"
#include "muster/executors.h"
#include "sql/postgres_uri.h"
#include "sql/sqlite.h"
#include "sql/sqlite_url.h"

namespace muster::task {
namespace {

// A page is held in memory.
constexpr int64_t kPageRows = 50'000;

constexpr size_t kMaxTablesBytes = size_t{1} << 20;
constexpr std::chrono::seconds kBusy{10};

// A sqlite: target: its path and, from ?tables=FILE, the SQL that creates its tables.
struct SqlitePlace {
  std::string path;
  std::optional<std::string> tables = {};
};

Result<SqlitePlace> SqlitePlaceOf(const Url& url) {
  SqlitePlace place{.path = {}, .tables = url.Param("tables")};
  MUSTER_ASSIGN(place.path, sql::SqliteFileOf(url, "target"));
  for (const auto& [name, value] : url.query) {
    if (name == "tables" && !value.empty()) continue;
    return Error{
        Code::kInvalid, "target: a SQLite file has no parameter '" + name + "'",
        "write sqlite:FILE, or sqlite:FILE?tables=SQL-FILE to create it with these tables"};
  }
  return place;
}

Status CreateIn(const std::string& path, const std::string& statements) {
  MUSTER_ASSIGN(const auto db, sql::SqliteDb::Open(path, sql::SqliteDb::Mode::kCreate, kBusy));
  return db->Execute(statements);
}

bool IsMissing(const std::string& path) {
  std::error_code error;
  return !std::filesystem::exists(path, error) && !error;
}

// Gives the draft its name unless there is a file of that name: EEXIST. Otherwise 0 or the errno.
int Publish(const std::string& draft, const std::string& path) {
  if (renameat2(AT_FDCWD, draft.c_str(), AT_FDCWD, path.c_str(), RENAME_NOREPLACE) == 0) return 0;
  if (errno != EINVAL && errno != ENOSYS) return errno;
  // A file system that cannot do this, such as NFS, has links.
  return link(draft.c_str(), path.c_str()) == 0 ? 0 : errno;
}

// The file appears complete with its tables or not at all, and only once, even if several tasks and
// processes create it at a time.
Status CreateWithTables(const SqlitePlace& place, Env& env) {
  if (!IsMissing(place.path)) return {};
  MUSTER_ASSIGN(const std::string statements, ReadFile(*place.tables, kMaxTablesBytes));
  const std::string draft = place.path + "." + env.NewId() + ".tmp";
  Status created = CreateIn(draft, statements);
  if (!created) created = created.error().Within(*place.tables);
  const int failed = created ? Publish(draft, place.path) : 0;
  unlink(draft.c_str());
  MUSTER_TRY(created);
  if (failed == EEXIST) return {};
  return failed == 0 ? SyncFolderOf(place.path) : FileError("create", place.path, failed);
}

}  // namespace

std::string KeyViolation::ToString() const {
  return std::to_string(rows) + (rows == 1 ? " row of " : " rows of ") + child + " refer" +
         (rows == 1 ? "s to a parent" : " to parents") + " missing from " + parent + ": " + example;
}

Result<std::unique_ptr<TransformTarget>> OpenTransformTarget(const std::string& text, Env& env,
                                                             const OnWait& on_wait) {
  MUSTER_ASSIGN(const Url url, ParseUrl(text));
  if (url.scheme == "sqlite") {
    MUSTER_ASSIGN(const SqlitePlace place, SqlitePlaceOf(url));
    if (place.tables) MUSTER_TRY(CreateWithTables(place, env));
    return OpenSqliteTarget(place.path, env, on_wait);
  }
  if (url.scheme == "postgresql" || url.scheme == "postgres") {
    MUSTER_ASSIGN(const std::string uri, sql::PostgresUri(url, "target", {}));
    return OpenPostgresTarget(uri, env, on_wait);
  }
  return Error{Code::kInvalid, "unknown target '" + url.scheme + ":'",
               "use sqlite:FILE or postgresql://USER@HOST/DATABASE"};
}

Status CheckTransformTarget(const std::string& text) {
  MUSTER_ASSIGN(const Url url, ParseUrl(text));
  if (url.scheme != "sqlite") return {};
  MUSTER_ASSIGN(const SqlitePlace place, SqlitePlaceOf(url));
  if (!place.tables || !IsMissing(place.path)) return CheckSqliteTarget(place.path);
  const auto statements = ReadFile(*place.tables, kMaxTablesBytes);
  return statements ? Status() : Status(statements.error());
}

Status ForEachRow(sql::DuckDb& db, const RowsToLoad& rows, const ColumnAs& as,
                  const std::stop_token& stop, const sql::DuckDb::OnRow& row) {
  std::string columns;
  for (size_t i = 0; i < rows.columns.size(); ++i) {
    columns += (i == 0 ? "" : ", ") + as(sql::DuckIdentifier(rows.columns[i]), rows.types[i]);
  }
  for (int64_t begin = 0; begin <= rows.last_rowid; begin += kPageRows) {
    if (stop.stop_requested()) return Error{Code::kCancelled, "stopped"};
    MUSTER_TRY(db.Query("SELECT " + columns + " FROM " + rows.from +
                            " WHERE rowid >= " + std::to_string(begin) + " AND rowid < " +
                            std::to_string(begin + kPageRows) + " AND " + rows.where,
                        row));
    if (rows.progress) rows.progress(std::min(begin + kPageRows, rows.last_rowid + 1));
  }
  return {};
}

std::string ColumnAsText(const std::string& column, const std::string& type) {
  const bool nested = type.ends_with(']') || type.starts_with("STRUCT") || type.starts_with("MAP");
  if (nested) return "CAST(to_json(" + column + ") AS VARCHAR)";
  if (type == "BLOB") return "'\\x' || hex(" + column + ")";
  return "CAST(" + column + " AS VARCHAR)";
}

std::string ColumnList(const std::vector<std::string>& columns,
                       std::string (*quote)(std::string_view)) {
  std::string list;
  for (const std::string& column : columns) list += (list.empty() ? "" : ", ") + quote(column);
  return list;
}

std::string UpsertClause(const RowsToLoad& rows, const TargetTable& table,
                         std::string (*quote)(std::string_view)) {
  std::string changes;
  for (const std::string& column : rows.columns) {
    if (std::find(table.key.begin(), table.key.end(), column) != table.key.end()) continue;
    changes += (changes.empty() ? "" : ", ") + quote(column) + " = excluded." + quote(column);
  }
  if (changes.empty()) changes = quote(table.key[0]) + " = excluded." + quote(table.key[0]);
  return " ON CONFLICT (" + ColumnList(table.key, quote) + ") DO UPDATE SET " + changes;
}

}  // namespace muster::task
