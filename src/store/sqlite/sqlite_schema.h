#pragma once

#include <string>

#include "muster/result.h"
#include "sql/sqlite.h"

namespace muster::store {

inline constexpr int kSqliteSchemaVersion = 1;

// The schema version of a namespace in this file; 0: none yet.
Result<int> SqliteSchemaVersion(sql::SqliteDb& db, const std::string& space);

// Migrates a namespace's tables to kSqliteSchemaVersion in one transaction: atomic after a crash,
// and safe for concurrent processes. Newer tables: kIncompatible.
Status MigrateSqlite(sql::SqliteDb& db, const std::string& space);

}  // namespace muster::store
