#pragma once

#include <string>

#include "core/record_version.h"
#include "muster/result.h"
#include "sql/postgres.h"
#include "sql/sqlite.h"

namespace muster::sql {

// Tables that Muster keeps in a target, among the user's own. The version of such a table is the
// default of its column `format`: it needs no second table, which could be left behind when this
// one is dropped, and `\d` shows it. Tables from before there were versions lack the column, and
// have all others.

// "format integer NOT NULL DEFAULT 1", for CREATE TABLE.
std::string FormatColumn(const RecordFormat& table);

// `table.name` is the table's. kIncompatible: a newer version of muster created it.
Status CheckSqliteTable(SqliteDb& db, const RecordFormat& table);

// Whether the table exists. `name`: as in SQL, perhaps with its schema. Errors as above.
Result<bool> FindPgTable(PgConnection& connection, const std::string& name,
                         const RecordFormat& table);

}  // namespace muster::sql
