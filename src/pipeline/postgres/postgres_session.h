#pragma once

#include <memory>
#include <string>

#include "muster/result.h"
#include "sql/postgres.h"

namespace muster::pipeline {

// Opens a session for writing: every wait is bounded, and every commit is durable unless it says
// otherwise, whatever the role's or database's defaults.
Result<std::unique_ptr<sql::PgConnection>> OpenPgWriteSession(const std::string& uri);

// Opens a session for reading without a statement timeout.
Result<std::unique_ptr<sql::PgConnection>> OpenPgReadSession(const std::string& uri);

// As Source::TableId: by server, database and oid, not by host name. `name` is quoted. Empty: no
// such table, or the user may not see the server's identity.
Result<std::string> PgTableId(sql::PgConnection& connection, const std::string& name);

}  // namespace muster::pipeline
