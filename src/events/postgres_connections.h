#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/postgres.h"
#include "muster/env.h"
#include "store/postgres_pool.h"

namespace muster {

// The connections of an event log, and calls that are made again where nothing was applied.
// Thread-safe.
class PostgresConnections {
 public:
  PostgresConnections(const std::string& uri, Env& env);

  // kUnavailable only after a few tries; see PgConnection for the other errors.
  Result<std::vector<PgResult>> Run(std::span<const PgCall> calls);
  Result<PgResult> Run(const PgStatement& statement, const PgParams& params);

  Result<PostgresPool::Lease> Take() { return pool_.Take(); }

 private:
  Env& env_;
  PostgresPool pool_;
};

}  // namespace muster
