#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sql/postgres.h"

namespace muster::replica {

// How a statement fails the transaction of a worker that was fenced off: by a cast of this text.
inline constexpr std::string_view kFenced = "muster: fenced";

// The SQL of the read model on PostgreSQL. Parameters 1 to 3 are always set, projection and
// version.
struct PostgresReadModelStatements {
  explicit PostgresReadModelStatements(const std::string& space);

  sql::PgStatement create, raise, move, slots, highest, put, count_skipped;
  // Without parameters: bounds the waits of a take-over, ends sessions that hold one up.
  sql::PgStatement limit_waits, end_stalled;
  sql::PgStatement are_parked, park_streams, park_events, fail_replay, free_events, free_streams,
      parked, ask, forget_skipped, unpark_events, unpark_streams;
  std::vector<sql::PgStatement> forget, swap;

 private:
  void SetTakeOver(const std::string& space);
  void SetCheckpoints(const std::string& space);
  void SetParking(const std::string& space);
  void SetSwap(const std::string& space);
};

}  // namespace muster::replica
