#pragma once

#include <optional>
#include <stop_token>
#include <string>

#include "base/postgres.h"
#include "task/load_fence.h"

namespace muster::task {

// A LoadFence in PostgreSQL. Used by one thread, with one connection at a time.
class PostgresFence {
 public:
  PostgresFence(LoadFence fence, OnWait say) : fence_(std::move(fence)), say_(std::move(say)) {}

  // Opens it for this session: from now on no other can load. As CheckOpen. A session that keeps it
  // locked in the middle of a load, as one does whose process was stopped, is ended if the server
  // lets us, and else waited for; kUnavailable: in vain.
  Result<std::optional<std::string>> Take(PgConnection& connection, const std::stop_token& stop);

  // Within a transaction: keeps it locked until that ends. As CheckHeld.
  Status Lock(PgConnection& connection) const;

  // Ends the transaction, with the result. kUnknownOutcome: Take tells, on another connection.
  Status Commit(PgConnection& connection, const std::string& result) const;

 private:
  Status EnsureTable(PgConnection& connection) const;
  Result<std::optional<std::string>> TryTake(PgConnection& connection);
  Result<std::string> EndHolder(PgConnection& connection) const;

  const LoadFence fence_;
  const OnWait say_;
  int64_t epoch_ = 0;
};

// Which session holds what another one, by its process, waits for; empty: it waits for none.
Result<std::string> DescribeBlocker(PgConnection& connection, int32_t pid);

}  // namespace muster::task
