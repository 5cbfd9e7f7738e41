#pragma once

#include <string>
#include <string_view>

#include "base/postgres.h"

namespace muster {

// The text with `$S` replaced by the schema.
std::string InPgSchema(std::string_view sql, const std::string& schema);

// Runs one statement without parameters.
Result<PgResult> RunPlain(PgConnection& connection, std::string sql, bool writes = true);

// Both ask the catalog: it shows what another process has committed a moment ago, where to_regclass
// may remember from before that there was nothing.
Result<bool> PgSchemaExists(PgConnection& connection, const std::string& schema);
Result<bool> PgTableExists(PgConnection& connection, const std::string& schema,
                           std::string_view table);

}  // namespace muster
