#pragma once

#include <string>

#include "base/postgres.h"

namespace muster {

// Brings the schema `space` to the version this program works with: creates it, migrates an older
// one, and leaves one that is up to date alone, so that a role without the right to create can work
// there. Safe to call from any number of processes at once and to repeat after a crash: migrations
// run one after the other under a lock, each at most once, all in one transaction.
//
// kIncompatible: the server is too old, its encoding is not UTF-8, or the schema is of a newer
// version. kPermission: the role may neither use the schema nor create it.
Status MigratePostgres(PgConnection& connection, const std::string& space);

}  // namespace muster
