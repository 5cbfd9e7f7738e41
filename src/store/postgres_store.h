#pragma once

#include <memory>
#include <string>

#include "base/postgres.h"
#include "muster/store.h"

namespace muster {

// How long the store waits for its server, and how many connections it opens at most.
struct PostgresLimits {
  milliseconds connect_timeout{5'000};
  milliseconds call_timeout{10'000};
  size_t connections = 64;
};

// OpenPostgresStore of backends.h with limits of one's own.
Result<std::unique_ptr<Store>> OpenPostgresStore(const std::string& uri, const std::string& space,
                                                 Env& env, const PostgresLimits& limits);

}  // namespace muster
