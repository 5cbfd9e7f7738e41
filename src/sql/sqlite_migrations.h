#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "sql/sqlite.h"

namespace muster::sql {

// The text with `$_` replaced by the namespace and `_`: "$_events" is a table of the namespace.
std::string InSqliteSpace(std::string_view sql, const std::string& space);

// The tables of one component in a namespace, and how to bring them from version to version.
struct SqliteMigrations {
  using Step = std::function<Status(SqliteDb& db, const std::string& space)>;

  std::string_view what;           // "the event log"; empty: the namespace itself
  std::string_view version_table;  // "$_events_schema"
  // A table that existed before there was a version table: with it alone, the version is 1.
  std::string_view unversioned = {};
  std::vector<Step> steps;  // step i leads from version i to i + 1; released steps never change
};

// A step that runs statements, with `$_` as in InSqliteSpace.
SqliteMigrations::Step SqliteStatements(std::string_view sql);

// A step's part: adds a column ("name TYPE …") unless the table has it.
Status AddSqliteColumn(SqliteDb& db, const std::string& table, std::string_view column);

// The version of a component's tables; 0: none yet.
Result<int> VersionOfSqlite(SqliteDb& db, const std::string& space,
                            const SqliteMigrations& migrations);

// Brings the tables to the newest version in one transaction: atomic after a crash, and safe for
// concurrent processes. Writes nothing if they are current. Newer tables: kIncompatible.
Status MigrateSqliteTables(SqliteDb& db, const std::string& space,
                           const SqliteMigrations& migrations);

}  // namespace muster::sql
