#pragma once

#include <memory>
#include <string>

#include "base/postgres.h"
#include "muster/result.h"

namespace muster {

// Opens a session for writing: every wait is bounded, and every commit is durable unless it says
// otherwise, whatever the role's or database's defaults.
Result<std::unique_ptr<PgConnection>> OpenPgWriteSession(const std::string& uri);

// Opens a session for reading without a statement timeout.
Result<std::unique_ptr<PgConnection>> OpenPgReadSession(const std::string& uri);

}  // namespace muster
