#pragma once

#include <memory>
#include <string>

#include "base/postgres.h"
#include "muster/result.h"

namespace muster {

// Opens a session that writes: bounded in every wait, and durable at every commit that does not say
// otherwise, also where a role or database is set up not to.
Result<std::unique_ptr<PgConnection>> OpenPgWriteSession(const std::string& uri);

// Opens a session that reads for as long as it takes: a query is not cut off by time.
Result<std::unique_ptr<PgConnection>> OpenPgReadSession(const std::string& uri);

}  // namespace muster
