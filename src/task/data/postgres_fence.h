#pragma once

#include <optional>
#include <stop_token>
#include <string>

#include "sql/postgres.h"
#include "task/data/load_fence.h"

namespace muster::task {

// A LoadFence in PostgreSQL. Used by one thread, with one connection at a time.
class PostgresFence {
 public:
  PostgresFence(LoadFence fence, OnWait say) : fence_(std::move(fence)), say_(std::move(say)) {}

  // Opens it for this session: from now on no other can load. As CheckOpen. A session that keeps it
  // locked in the middle of a load, as one does whose process was stopped, is ended if the server
  // lets us, and else waited for; kUnavailable: in vain.
  Result<std::optional<std::string>> Take(sql::PgConnection& connection,
                                          const std::stop_token& stop);

  // Within a transaction: keeps it locked until that ends. As CheckHeld.
  Status Lock(sql::PgConnection& connection) const;

  // Ends the transaction, with the result. kUnknownOutcome: Take tells, on another connection.
  Status Commit(sql::PgConnection& connection, const std::string& result) const;

 private:
  Status EnsureTable(sql::PgConnection& connection) const;
  Result<std::optional<std::string>> TryTake(sql::PgConnection& connection);
  Result<std::string> EndHolder(sql::PgConnection& connection) const;

  const LoadFence fence_;
  const OnWait say_;
  int64_t epoch_ = 0;
};

// Which session holds what another one, by its process, waits for; empty: it waits for none.
Result<std::string> DescribeBlocker(sql::PgConnection& connection, int32_t pid);

}  // namespace muster::task
