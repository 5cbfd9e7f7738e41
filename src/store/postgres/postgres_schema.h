#pragma once

#include <string>

#include "sql/postgres.h"

namespace muster::store {

// Migrates the schema `space` to the version this program uses: creates it, upgrades an older one,
// and leaves a current one alone, so that a role without permission to create can use it. Safe for
// concurrent processes and idempotent after a crash: migrations run sequentially under a lock, each
// at most once, all in one transaction.
//
// kIncompatible: the server is too old, its encoding is not UTF-8, or the schema is newer.
// kPermission: the role may neither use nor create the schema.
Status MigratePostgres(sql::PgConnection& connection, const std::string& space);

}  // namespace muster::store
