#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sql/postgres.h"

namespace muster::sql {

// The tables of one component in a schema, and how to bring them from version to version.
struct PgMigrations {
  std::string_view what;           // "the event log"; empty: the schema itself
  std::string_view version_table;  // "event_log_version"
  // A table that existed before there was a version table: with it alone, the version is 1.
  std::string_view unversioned = {};
  // The statements that lead to version 1, 2, …; `$S` is the schema. Released ones never change.
  std::vector<std::vector<std::string>> steps;
};

// Brings a component's tables to the newest version: creates them, upgrades older ones, and leaves
// current ones alone, so that a role without permission to create can use them. Safe for concurrent
// processes and idempotent after a crash: steps run under a lock, all in one transaction.
//
// kIncompatible: the tables are newer. kPermission: the role may neither use nor create them.
Status MigratePgTables(PgConnection& connection, const std::string& space,
                       const PgMigrations& migrations);

}  // namespace muster::sql
