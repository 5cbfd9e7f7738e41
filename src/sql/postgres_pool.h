#pragma once

#include <condition_variable>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "core/mutex.h"
#include "muster/env.h"
#include "sql/postgres.h"

namespace muster::sql {

// Connections opened on demand, reused while they work and dropped when they don't. Every session
// commits durably, whatever the role's or database's defaults.
//
// Thread-safe. Must outlive the connections it lends.
class PostgresPool {
 public:
  PostgresPool(PgOptions options, size_t max_connections);

  // Returns the connection when destroyed.
  class Lease {
   public:
    Lease(PostgresPool& pool, std::unique_ptr<PgConnection> connection)
        : pool_(&pool), connection_(std::move(connection)) {}
    Lease(Lease&&) = default;
    Lease& operator=(Lease&&) = delete;
    ~Lease() {
      if (connection_) pool_->Return(std::move(connection_));
    }
    PgConnection* operator->() const { return connection_.get(); }
    PgConnection& operator*() const { return *connection_; }

   private:
    PostgresPool* pool_;
    std::unique_ptr<PgConnection> connection_;
  };

  // An idle, working connection, or a new one. kUnavailable: the server is unreachable, or all
  // connections stayed busy for a whole call timeout.
  Result<Lease> Take();

  // On any connection, with a few retries if nothing was applied (kUnavailable). See PgConnection
  // for the other errors.
  Result<std::vector<PgResult>> Run(std::span<const PgCall> calls, Env& env);
  Result<PgResult> Run(const PgStatement& statement, const PgParams& params, Env& env);

 private:
  std::unique_ptr<PgConnection> TakeIdle();  // or null
  Result<std::unique_ptr<PgConnection>> Open() const;
  void Return(std::unique_ptr<PgConnection> connection);

  const PgOptions options_;
  const size_t max_connections_;
  Mutex mutex_;
  std::condition_variable_any returned_;
  size_t lent_ GUARDED_BY(mutex_) = 0;
  // Last in, first out.
  std::vector<std::unique_ptr<PgConnection>> idle_ GUARDED_BY(mutex_);
};

}  // namespace muster::sql
