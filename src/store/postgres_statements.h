#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/postgres.h"

namespace muster {

// The store's PostgreSQL statements, one per operation. The server's clock is read once per
// statement, in whole milliseconds.
//
// Records are the columns queue, key, version, due, owner, epoch, attempt, body. A delay is in
// milliseconds: null for never, negative for unchanged.
struct PostgresStatements {
  explicit PostgresStatements(const std::string& space);

  PgStatement get;   // kind, key
  PgStatement scan;  // kind, prefix, after, limit
  PgStatement now;

  // kind, queue, limit or key, owner, claim_id, lease, max_lease, ClaimStep
  PgStatement claim;        // and the due time to start from; also returns the old due times
  PgStatement claim_again;  // what claim_id still holds, or a new claim
  PgStatement claim_key;
  PgStatement claim_key_again;

  PgStatement replace;  // kind, key, version, delay, owner, attempt, body
  // Arrays of the same, with queue at the end and, in `create`, new versions. Return kind and key
  // of what was applied.
  PgStatement create_many;
  PgStatement replace_many;
  PgStatement delete_many;  // arrays of kind, key, version
};

// Session settings that leave the planner one plan per statement: along the index made for it,
// whatever the statistics, and planned once.
std::vector<std::pair<std::string, std::string>> PostgresSessionSettings();

}  // namespace muster
