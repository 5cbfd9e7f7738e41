#include <algorithm>
#include <cctype>
#include <filesystem>
#include <map>

#include "core/wait_watch.h"
#include "sql/sqlite.h"
#include "sql/sqlite_table.h"
#include "task/data/sqlite_fence.h"
#include "task/data/transform_target.h"

namespace muster::task {
namespace {

// The scripts of a rank load the same file concurrently and take turns.
constexpr std::chrono::milliseconds kWriteLockWait{600'000};

std::string AsSqliteTakesIt(const std::string& column, const std::string& type) {
  if (type == "BOOLEAN" || type == "BIGINT" || type == "INTEGER" || type == "SMALLINT" ||
      type == "TINYINT" || type == "UINTEGER" || type == "USMALLINT" || type == "UTINYINT") {
    return "CAST(" + column + " AS BIGINT)";
  }
  if (type == "DOUBLE" || type == "FLOAT") return "CAST(" + column + " AS DOUBLE)";
  return ColumnAsText(column, type);
}

std::string WriteLockOf(const std::string& path) {
  return "the write lock of " + path + ", held by another connection";
}

void BindValue(sql::SqliteStatement& statement, int index, const sql::DuckValue& value) {
  if (const auto* number = std::get_if<int64_t>(&value)) {
    statement.BindAt(index, *number);
  } else if (const auto* real = std::get_if<double>(&value)) {
    statement.BindAt(index, *real);
  } else if (const auto* text = std::get_if<std::string_view>(&value)) {
    statement.BindAt(index, *text);
  } else {
    statement.BindAt(index, nullptr);
  }
}

// A row that breaks a constraint is the data's fault, not a concurrent change: a retry fails again.
// Foreign keys are checked at the end.
Error RowError(Error error) {
  if (error.code == Code::kConflict) error.code = Code::kInvalid;
  return error;
}

bool IsWhole(const std::string& type) {
  return type.ends_with("INT") || type.ends_with("INTEGER") || type == "BOOLEAN";
}

// Whether values that differ in DuckDB also differ in an SQLite column: its type may convert them
// ('01' and '1' in an INTEGER column), and its collation may treat them as equal ('A' and 'a').
bool Distinguishes(sql::SqliteTable::Form form, const std::string& collation,
                   const std::string& type) {
  const bool real = type == "DOUBLE" || type == "FLOAT";
  if (collation != "BINARY") return false;
  switch (form) {
    case sql::SqliteTable::Form::kText:
      return !real;
    case sql::SqliteTable::Form::kInteger:
    case sql::SqliteTable::Form::kNumeric:
      return IsWhole(type);
    case sql::SqliteTable::Form::kReal:
      return real;
    default:
      return false;
  }
}

// Finds duplicate keys by SQLite's own rules: the second row would replace the first, and both
// would count as loaded.
class SqliteKeys {
 public:
  // Null: not needed, DuckDB compares these keys in the same way.
  static Result<std::unique_ptr<SqliteKeys>> For(sql::SqliteDb& db, const RowsToLoad& rows,
                                                 const TargetTable& table) {
    MUSTER_ASSIGN(const sql::SqliteTable described, sql::DescribeSqliteTable(db, table.name));
    std::unique_ptr<SqliteKeys> keys(new SqliteKeys(db, table.name));
    std::string columns;
    std::string places;
    bool exact = true;
    for (const std::string& name : table.key) {
      MUSTER_ASSIGN(const std::string collation, CollationOf(db, table.name, name));
      const auto place = std::find(rows.columns.begin(), rows.columns.end(), name);
      keys->places_.push_back(static_cast<size_t>(place - rows.columns.begin()));
      keys->names_.push_back(name);
      const sql::SqliteTable::Column& column = *described.Find(name);
      exact = exact && Distinguishes(column.form, collation, rows.types[keys->places_.back()]);
      columns += sql::SqliteIdentifier(name) + " " + PlainType(column.type) + " COLLATE " +
                 sql::SqliteIdentifier(collation) + ", ";
      places += places.empty() ? "?" : ", ?";
    }
    if (exact) return std::unique_ptr<SqliteKeys>();
    MUSTER_TRY(db.Execute("CREATE TEMP TABLE muster_keys (" + columns + "PRIMARY KEY (" +
                          ColumnList(table.key, sql::SqliteIdentifier) + ")) WITHOUT ROWID"));
    MUSTER_ASSIGN(keys->insert_, db.Prepare("INSERT INTO muster_keys VALUES (" + places + ")"));
    return keys;
  }

  // kInvalid: an earlier row has the same key.
  Status Add(std::span<const sql::DuckValue> values) {
    for (size_t i = 0; i < places_.size(); ++i)
      BindValue(insert_, static_cast<int>(i + 1), values[places_[i]]);
    Status added = insert_.Run();
    if (added || added.error().code != Code::kConflict) return added;
    std::string key;
    for (size_t i = 0; i < places_.size(); ++i)
      key += (i == 0 ? "" : ", ") + names_[i] + " = " + TextOf(values[places_[i]]);
    return Error{
        Code::kInvalid,
        "several rows for " + table_ + " have the same key by SQLite's rules, for example " + key,
        "the column's type or collation treats them as equal: group them, or reject all but one "
        "with the column _rejected"};
  }

  Status End() {
    insert_ = sql::SqliteStatement();
    return db_.Execute("DROP TABLE muster_keys");
  }

 private:
  SqliteKeys(sql::SqliteDb& db, std::string table) : db_(db), table_(std::move(table)) {}

  // Of a column in the primary key, which may differ from that of the column itself.
  static Result<std::string> CollationOf(sql::SqliteDb& db, const std::string& table,
                                         const std::string& column) {
    MUSTER_ASSIGN(auto find, db.Prepare("SELECT x.coll FROM pragma_index_list(?1) l JOIN "
                                        "pragma_index_xinfo(l.name) x WHERE l.origin = 'pk' AND "
                                        "x.name = ?2 AND x.key = 1"));
    find.Bind(table, column);
    MUSTER_ASSIGN(const bool found, find.Step());
    // An INTEGER PRIMARY KEY has no index.
    return found ? std::string(find.Text(0)) : std::string("BINARY");
  }

  // A declared type that can be declared again; empty if it cannot.
  static std::string PlainType(const std::string& type) {
    const bool plain = std::all_of(type.begin(), type.end(), [](char c) {
      return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == ' ' || c == '_';
    });
    const size_t open = type.find('(');
    return plain ? type : open == type.npos ? "" : PlainType(type.substr(0, open));
  }

  static std::string TextOf(const sql::DuckValue& value) {
    if (const auto* number = std::get_if<int64_t>(&value)) return std::to_string(*number);
    if (const auto* real = std::get_if<double>(&value)) return std::to_string(*real);
    if (const auto* text = std::get_if<std::string_view>(&value))
      return "'" + std::string(*text) + "'";
    return "NULL";
  }

  sql::SqliteDb& db_;
  const std::string table_;
  std::vector<size_t> places_;  // of the key's columns, in a row
  std::vector<std::string> names_;
  sql::SqliteStatement insert_;
};

class SqliteTarget : public TransformTarget {
 public:
  SqliteTarget(std::unique_ptr<sql::SqliteDb> db, std::string path, Env& env, OnWait on_wait)
      : db_(std::move(db)), path_(std::move(path)), env_(env), on_wait_(std::move(on_wait)) {}

  Result<std::optional<std::string>> Take(const LoadFence& fence,
                                          const std::stop_token& /*stop*/) override {
    const WaitWatch watch([this] { return WriteLockOf(path_); }, on_wait_, env_);
    fence_.emplace(fence);
    return fence_->Take(*db_);
  }

  // SQLite has no schemas: the table is named by both, joined by an underscore.
  Result<TargetTable> Describe(const std::string& schema, const std::string& table) override {
    const std::string name = schema.empty() ? table : schema + "_" + table;
    MUSTER_ASSIGN(const sql::SqliteTable found, sql::DescribeSqliteTable(*db_, name));
    TargetTable target{
        .name = name, .sql = sql::SqliteIdentifier(name), .columns = {}, .key = found.key};
    for (const auto& column : found.columns) {
      if (!column.generated) target.columns.push_back(column.name);
    }
    return target;
  }

  Result<int64_t> Load(sql::DuckDb& db, const RowsToLoad& rows, const TargetTable& table,
                       const std::stop_token& stop) override {
    MUSTER_TRY(BeginOnce());
    loaded_.push_back(table);
    std::string places;
    for (size_t i = 1; i <= rows.columns.size(); ++i) {
      places += (i == 1 ? "?" : ", ?") + std::to_string(i);
    }
    MUSTER_ASSIGN(sql::SqliteStatement insert,
                  db_->Prepare("INSERT INTO " + table.sql + " (" +
                               ColumnList(rows.columns, sql::SqliteIdentifier) + ") VALUES (" +
                               places + ")" + UpsertClause(rows, table, sql::SqliteIdentifier)));
    MUSTER_ASSIGN(const auto keys, SqliteKeys::For(*db_, rows, table));
    int64_t taken = 0;
    const auto insert_row = [&](std::span<const sql::DuckValue> values) -> Status {
      for (size_t i = 0; i < values.size(); ++i) {
        BindValue(insert, static_cast<int>(i + 1), values[i]);
      }
      if (keys) MUSTER_TRY(keys->Add(values));
      if (const Status inserted = insert.Run(); !inserted) return RowError(inserted.error());
      taken += db_->Changes();
      return {};
    };
    MUSTER_TRY(ForEachRow(db, rows, AsSqliteTakesIt, stop, insert_row));
    if (keys) MUSTER_TRY(keys->End());
    return taken;
  }

  Status Commit(const std::string& result) override {
    MUSTER_TRY(BeginOnce());
    MUSTER_TRY(fence_->Keep(*db_, result));
    Status committed = transaction_->Commit();
    if (committed || committed.error().code != Code::kConflict) return committed;
    // SQLite does not say which key is violated; the transaction is still open, so look.
    for (const TargetTable& table : loaded_) {
      MUSTER_ASSIGN(const KeyCheck check, CheckKeys(table));
      if (check.violations.empty()) continue;
      return Error{Code::kConflict,
                   std::string(kForeignKeyViolated) + check.violations.front().ToString(),
                   kForeignKeyHint};
    }
    return committed;
  }

  Result<KeyCheck> CheckKeys(const TargetTable& table) override {
    struct Found {
      KeyViolation violation;
      int64_t rowid = 0;
    };
    std::map<int64_t, Found> found;  // by the key's id
    MUSTER_ASSIGN(auto check, db_->Prepare("PRAGMA foreign_key_check(" + table.sql + ")"));
    while (true) {
      MUSTER_ASSIGN(const bool more, check.Step());
      if (!more) break;
      Found& one = found[check.Int(3)];
      if (one.violation.rows++ > 0) continue;
      one.violation.child = table.name;
      one.violation.parent = check.Text(2);
      one.rowid = check.Int(1);
    }
    KeyCheck result;
    MUSTER_ASSIGN(result.keys, CountKeys(table));
    for (auto& [key, one] : found) {
      MUSTER_ASSIGN(one.violation.example, Reference(table, key, one.rowid));
      result.violations.push_back(std::move(one.violation));
    }
    return result;
  }

 private:
  // Takes the write lock as late as possible, so that a running script blocks no other writer.
  Status BeginOnce() {
    if (transaction_) return {};
    MUSTER_TRY(db_->Execute("PRAGMA foreign_keys = ON"));
    const WaitWatch watch([this] { return WriteLockOf(path_); }, on_wait_, env_);
    MUSTER_ASSIGN(sql::SqliteTransaction begun, sql::SqliteTransaction::Begin(*db_));
    transaction_ = std::make_unique<sql::SqliteTransaction>(std::move(begun));
    MUSTER_TRY(fence_->Check(*db_));
    return db_->Execute("PRAGMA defer_foreign_keys = ON");
  }

  Result<int64_t> CountKeys(const TargetTable& table) {
    MUSTER_ASSIGN(auto list, db_->Prepare("PRAGMA foreign_key_list(" + table.sql + ")"));
    int64_t keys = 0;
    while (true) {
      MUSTER_ASSIGN(const bool more, list.Step());
      if (!more) return keys;
      // A key has a row per column.
      if (list.Int(1) == 0) ++keys;
    }
  }

  // "site_id = 'a01'"
  Result<std::string> Reference(const TargetTable& table, int64_t constraint, int64_t rowid) {
    MUSTER_ASSIGN(auto list, db_->Prepare("PRAGMA foreign_key_list(" + table.sql + ")"));
    std::vector<std::string> columns;
    while (true) {
      MUSTER_ASSIGN(const bool more, list.Step());
      if (!more) break;
      if (list.Int(0) == constraint) columns.emplace_back(list.Text(3));
    }
    std::string text;
    for (const std::string& column : columns) {
      MUSTER_ASSIGN(auto value, db_->Prepare("SELECT quote(" + sql::SqliteIdentifier(column) +
                                             ") FROM " + table.sql + " WHERE rowid = ?1"));
      value.Bind(rowid);
      MUSTER_ASSIGN(const bool found, value.Step());
      text += (text.empty() ? "" : ", ") + column +
              (found ? " = " + std::string(value.Text(0)) : std::string());
    }
    return text;
  }

  const std::unique_ptr<sql::SqliteDb> db_;
  const std::string path_;
  Env& env_;
  const OnWait on_wait_;
  std::optional<SqliteFence> fence_;
  std::unique_ptr<sql::SqliteTransaction> transaction_;
  std::vector<TargetTable> loaded_;
};

}  // namespace

Status CheckSqliteTarget(const std::string& path) {
  if (std::error_code error; std::filesystem::exists(path, error) || error) return {};
  return Error{Code::kNotFound, "SQLite file " + path + " does not exist",
               "a transform loads rows into existing tables: create the file with its tables, or "
               "correct the target of the plan's profile"};
}

Result<std::unique_ptr<TransformTarget>> OpenSqliteTarget(const std::string& path, Env& env,
                                                          const OnWait& on_wait) {
  MUSTER_TRY(CheckSqliteTarget(path));
  // Opening may have to switch to write-ahead logging, which waits for other connections.
  const WaitWatch watch([&] { return WriteLockOf(path); }, on_wait, env);
  MUSTER_ASSIGN(auto db, sql::SqliteDb::Open(path, sql::SqliteDb::Mode::kExisting, kWriteLockWait));
  return std::make_unique<SqliteTarget>(std::move(db), path, env, on_wait);
}

}  // namespace muster::task
