#pragma once

#include <chrono>
#include <span>
#include <stop_token>
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

  // Waits until `last`, which asks for the last position, answers with more than `seen`, the time
  // is over or a stop is requested. That asks for the end of an index, which is always in memory; a
  // notification at every append would halve the rate of commits.
  void AwaitBeyond(int64_t seen, const PgStatement& last, std::chrono::milliseconds timeout,
                   std::stop_token stop);

  Result<PostgresPool::Lease> Take() { return pool_.Take(); }

 private:
  Env& env_;
  PostgresPool pool_;
};

}  // namespace muster
