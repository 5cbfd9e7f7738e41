#pragma once

#include "sql/postgres_migrations.h"

namespace muster::replica {

// The tables of checkpoints and parked events.
const sql::PgMigrations& PostgresReadModelTables();

}  // namespace muster::replica
