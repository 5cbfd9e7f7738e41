#pragma once

#include <memory>
#include <string>

#include "side.h"
#include "support/postgres_server.h"
#include "table.h"

namespace muster::bench {

// What PostgreSQL itself can do: pgbench with the bare SKIP LOCKED claim and a completing
// statement, one client for each worker. `table` must outlive the side.
std::unique_ptr<Side> RawPostgres(const testing::PostgresServer& server, const std::string& space,
                                  Table& table);

}  // namespace muster::bench
