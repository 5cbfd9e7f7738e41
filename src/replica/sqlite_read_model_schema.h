#pragma once

#include "sql/sqlite_migrations.h"

namespace muster::replica {

// The tables of checkpoints and parked events.
const sql::SqliteMigrations& SqliteReadModelTables();

}  // namespace muster::replica
