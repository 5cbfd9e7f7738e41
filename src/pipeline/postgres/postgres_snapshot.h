#pragma once

#include <memory>
#include <string>

#include "core/mutex.h"
#include "muster/result.h"
#include "sql/postgres.h"

namespace muster::pipeline {

// One database snapshot for all readers of a process: a transaction kept open, and sessions that
// share its view. If the server ends it, the next session starts a new snapshot, with a warning.
// Thread-safe.
class PostgresSnapshot {
 public:
  explicit PostgresSnapshot(std::string uri) : uri_(std::move(uri)) {}

  // A session in a read-only transaction on that snapshot.
  Result<std::unique_ptr<sql::PgConnection>> OpenSession();

 private:
  Result<std::string> Id();

  const std::string uri_;
  Mutex mutex_;
  std::unique_ptr<sql::PgConnection> holder_ GUARDED_BY(mutex_);
  std::string id_ GUARDED_BY(mutex_);
};

}  // namespace muster::pipeline
