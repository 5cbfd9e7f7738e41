#pragma once

#include <string>
#include <string_view>

#include "sql/postgres.h"

namespace muster::sql {

// The text with `$S` replaced by the schema.
std::string InPgSchema(std::string_view sql, const std::string& schema);

// Runs one statement without parameters.
Result<PgResult> RunPlain(PgConnection& connection, std::string sql, bool writes = true);

// Both query the catalog, which shows what another process has just committed; to_regclass may have
// cached that nothing was there.
Result<bool> PgSchemaExists(PgConnection& connection, const std::string& schema);
Result<bool> PgTableExists(PgConnection& connection, const std::string& schema,
                           std::string_view table);

}  // namespace muster::sql
