#pragma once

#include <string>

#include "base/sqlite.h"
#include "muster/result.h"

namespace muster {

inline constexpr int kSqliteSchemaVersion = 1;

// The schema version of a namespace in this file; 0: it has none yet.
Result<int> SqliteSchemaVersion(SqliteDb& db, const std::string& space);

// Brings the tables of a namespace to kSqliteSchemaVersion, in one transaction: after a crash it is
// all there or not at all, and several processes may do it at once. Newer tables: kIncompatible.
Status MigrateSqlite(SqliteDb& db, const std::string& space);

}  // namespace muster
