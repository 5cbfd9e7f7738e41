#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/postgres_schema.h"

namespace muster {

// Creates tables in the schema `space` by `statements`, unless `table` is there already; then
// nothing is asked for that needs the right to create. `$S` in a statement stands for the schema.
// Safe to call from any number of processes at once: one creates, in one transaction, and the
// others wait for it.
Status SetUpPostgres(PgConnection& connection, const std::string& space, std::string_view table,
                     std::span<const std::string> statements);

}  // namespace muster
