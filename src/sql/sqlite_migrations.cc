#include "sql/sqlite_migrations.h"

#include "core/schema_version.h"

namespace muster::sql {
namespace {

Result<bool> TableExists(SqliteDb& db, const std::string& table) {
  MUSTER_ASSIGN(auto found, db.Prepare("SELECT 1 FROM sqlite_schema WHERE name = ?"));
  found.Bind(table);
  return found.Step();
}

Status CheckNotNewer(const std::string& space, const SqliteMigrations& migrations, int version) {
  const auto newest = static_cast<int>(migrations.steps.size());
  if (version <= newest) return {};
  const std::string name = migrations.what.empty()
                               ? "namespace '" + space + "'"
                               : std::string(migrations.what) + " in namespace '" + space + "'";
  return NewerSchema("", name, version, newest);
}

}  // namespace

std::string InSqliteSpace(std::string_view sql, const std::string& space) {
  std::string text;
  for (size_t at = 0; at < sql.size();) {
    const size_t mark = sql.find("$_", at);
    text += sql.substr(at, mark - at);
    if (mark == std::string_view::npos) break;
    text += space + "_";
    at = mark + 2;
  }
  return text;
}

SqliteMigrations::Step SqliteStatements(std::string_view sql) {
  return [sql](SqliteDb& db, const std::string& space) {
    return db.Execute(InSqliteSpace(sql, space));
  };
}

Status AddSqliteColumn(SqliteDb& db, const std::string& table, std::string_view column) {
  const std::string name(column.substr(0, column.find(' ')));
  MUSTER_ASSIGN(auto there, db.Prepare("SELECT 1 FROM pragma_table_info(?) WHERE name = ?"));
  there.Bind(table, name);
  MUSTER_ASSIGN(const bool found, there.Step());
  if (found) return {};
  there.Reset();
  return db.Execute("ALTER TABLE " + table + " ADD COLUMN " + std::string(column));
}

Result<int> VersionOfSqlite(SqliteDb& db, const std::string& space,
                            const SqliteMigrations& migrations) {
  const std::string table = InSqliteSpace(migrations.version_table, space);
  MUSTER_ASSIGN(const bool versioned, TableExists(db, table));
  if (versioned) {
    MUSTER_ASSIGN(const int64_t version, db.QueryInt("SELECT version FROM " + table));
    return static_cast<int>(version);
  }
  if (migrations.unversioned.empty()) return 0;
  MUSTER_ASSIGN(const bool old, TableExists(db, InSqliteSpace(migrations.unversioned, space)));
  return old ? 1 : 0;
}

Status MigrateSqliteTables(SqliteDb& db, const std::string& space,
                           const SqliteMigrations& migrations) {
  const auto newest = static_cast<int>(migrations.steps.size());
  MUSTER_ASSIGN(int version, VersionOfSqlite(db, space, migrations));
  MUSTER_TRY(CheckNotNewer(space, migrations, version));
  if (version == newest) return {};
  MUSTER_ASSIGN(SqliteTransaction transaction, SqliteTransaction::Begin(db));
  // Another process may have migrated before we got the lock.
  MUSTER_ASSIGN(version, VersionOfSqlite(db, space, migrations));
  MUSTER_TRY(CheckNotNewer(space, migrations, version));
  for (int step = version; step < newest; ++step) {
    MUSTER_TRY(migrations.steps[static_cast<size_t>(step)](db, space));
  }
  const std::string table = InSqliteSpace(migrations.version_table, space);
  MUSTER_TRY(db.Execute("CREATE TABLE IF NOT EXISTS " + table +
                        " (version INTEGER NOT NULL) STRICT; DELETE FROM " + table +
                        "; INSERT INTO " + table + " VALUES (" + std::to_string(newest) + ")"));
  return transaction.Commit();
}

}  // namespace muster::sql
