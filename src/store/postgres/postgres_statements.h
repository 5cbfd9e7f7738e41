#pragma once

#include <string>
#include <utility>
#include <vector>

#include "sql/postgres.h"

namespace muster::store {

// The store's PostgreSQL statements, one per operation. The server's clock is read once per
// statement, in whole milliseconds.
//
// Records are the columns queue, key, version, due, owner, epoch, attempt, body. A delay is in
// milliseconds: null for never, negative for unchanged.
struct PostgresStatements {
  explicit PostgresStatements(const std::string& space);

  sql::PgStatement get;   // kind, key
  sql::PgStatement scan;  // kind, prefix, after, limit
  sql::PgStatement now;

  // kind, queue, limit or key, owner, claim_id, lease, max_lease, ClaimStep
  sql::PgStatement claim;        // and the due time to start from; also returns the old due times
  sql::PgStatement claim_again;  // what claim_id still holds, or a new claim
  sql::PgStatement claim_key;
  sql::PgStatement claim_key_again;

  sql::PgStatement replace;  // kind, key, version, delay, owner, attempt, body
  // Arrays of the same, with queue at the end and, in `create`, new versions. Return kind and key
  // of what was applied.
  sql::PgStatement create_many;
  sql::PgStatement replace_many;
  sql::PgStatement delete_many;  // arrays of kind, key, version
};

// Session settings that leave the planner one plan per statement: along the index made for it,
// whatever the statistics, and planned once.
std::vector<std::pair<std::string, std::string>> PostgresSessionSettings();

}  // namespace muster::store
