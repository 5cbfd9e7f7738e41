#pragma once

#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "base/postgres.h"
#include "muster/env.h"

namespace muster {

// Connections that are opened when needed, kept while they work, and dropped when they don't. Every
// session commits durably, also where a role or database is set up not to.
//
// Thread-safe. Must outlive what it lends.
class PostgresPool {
 public:
  PostgresPool(PgOptions options, size_t max_connections);

  // Gives the connection back when it is destroyed.
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

  // An idle connection that still works, or a new one. kUnavailable: the server is not reached, or
  // all connections stayed busy for as long as a call may take.
  Result<Lease> Take();

  // On any connection, a few times where that promises that nothing was applied (kUnavailable). See
  // PgConnection for the other errors.
  Result<std::vector<PgResult>> Run(std::span<const PgCall> calls, Env& env);
  Result<PgResult> Run(const PgStatement& statement, const PgParams& params, Env& env);

 private:
  std::unique_ptr<PgConnection> TakeIdle();  // or null
  Result<std::unique_ptr<PgConnection>> Open() const;
  void Return(std::unique_ptr<PgConnection> connection);

  const PgOptions options_;
  const size_t max_connections_;
  std::mutex mutex_;
  std::condition_variable returned_;
  size_t lent_ = 0;
  std::vector<std::unique_ptr<PgConnection>> idle_;  // the last one used is the next one taken
};

}  // namespace muster
