#pragma once

#include <span>
#include <string>
#include <string_view>

#include "sql/postgres_schema.h"

namespace muster::events {

// Creates tables in the schema `space` with `statements`, unless `table` exists; then no permission
// to create is needed. `$S` in a statement is the schema. Safe for concurrent processes: one
// creates, in one transaction, and the others wait.
Status SetUpPostgres(sql::PgConnection& connection, const std::string& space,
                     std::string_view table, std::span<const std::string> statements);

}  // namespace muster::events
