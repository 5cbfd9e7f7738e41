#pragma once

#include <optional>
#include <stop_token>
#include <string>

#include "muster/env.h"
#include "sql/postgres.h"
#include "task/data/load_fence.h"

namespace muster::task {

// A LoadFence in PostgreSQL. Used by one thread, with one connection at a time.
class PostgresFence {
 public:
  PostgresFence(LoadFence fence, Env& env, OnWait say)
      : fence_(std::move(fence)), env_(env), say_(std::move(say)) {}

  // Opens it for this session: from now on no other can load. As CheckOpen. A session that holds
  // the lock, such as that of a suspended process, is terminated if the server lets us, and
  // otherwise waited for; kUnavailable: for too long.
  Result<std::optional<std::string>> Take(sql::PgConnection& connection,
                                          const std::stop_token& stop);

  // Within a transaction: locks it until the end. As CheckHeld.
  Status Lock(sql::PgConnection& connection) const;

  // Commits the transaction with the result. kUnknownOutcome: call Take on another connection.
  Status Commit(sql::PgConnection& connection, const std::string& result) const;

 private:
  Status EnsureTable(sql::PgConnection& connection) const;
  Result<std::optional<std::string>> TryTake(sql::PgConnection& connection);
  Result<std::string> EndHolder(sql::PgConnection& connection) const;

  const LoadFence fence_;
  Env& env_;
  const OnWait say_;
  int64_t epoch_ = 0;
};

// Describes the session that blocks server process `pid`; empty: none does.
Result<std::string> DescribeBlocker(sql::PgConnection& connection, int32_t pid);

}  // namespace muster::task
