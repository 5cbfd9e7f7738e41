#pragma once

#include "sql/postgres_table.h"
#include "sql/sqlite_table.h"

namespace muster::pipeline {

// Whether it is a table of whole documents: only a text `id`, a `document` of type json or jsonb
// (in SQLite declared as JSON) and optionally a text `routing`.
bool HoldsDocuments(const sql::PgTable& table);
bool HoldsDocuments(const sql::SqliteTable& table);

}  // namespace muster::pipeline
