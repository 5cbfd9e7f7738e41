#pragma once

#include <string>

#include "base/sqlite.h"
#include "muster/result.h"

namespace muster {

inline constexpr int kSqliteSchemaVersion = 1;

// The schema version of a namespace in this file; 0: none yet.
Result<int> SqliteSchemaVersion(SqliteDb& db, const std::string& space);

// Migrates a namespace's tables to kSqliteSchemaVersion in one transaction: atomic after a crash,
// and safe for concurrent processes. Newer tables: kIncompatible.
Status MigrateSqlite(SqliteDb& db, const std::string& space);

}  // namespace muster
