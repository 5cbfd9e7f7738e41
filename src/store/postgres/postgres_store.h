#pragma once

#include <memory>
#include <string>

#include "muster/store.h"
#include "sql/postgres.h"

namespace muster::store {

// Timeouts, and the maximum number of connections.
struct PostgresLimits {
  milliseconds connect_timeout{5'000};
  milliseconds call_timeout{10'000};
  size_t connections = 64;
};

// OpenPostgresStore of backends.h with custom limits.
Result<std::unique_ptr<Store>> OpenPostgresStore(const std::string& uri, const std::string& space,
                                                 Env& env, const PostgresLimits& limits);

}  // namespace muster::store
