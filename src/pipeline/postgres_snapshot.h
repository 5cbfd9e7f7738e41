#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "base/postgres.h"
#include "muster/result.h"

namespace muster {

// One moment of a database for all readers of a process: a transaction that is kept open, and
// sessions that see what it sees. If the server ends it, the next session begins a new moment, and
// a warning says so. Thread-safe.
class PostgresSnapshot {
 public:
  explicit PostgresSnapshot(std::string uri) : uri_(std::move(uri)) {}

  // A session in a read-only transaction of that moment.
  Result<std::unique_ptr<PgConnection>> OpenSession();

 private:
  Result<std::string> Id();

  const std::string uri_;
  std::mutex mutex_;
  std::unique_ptr<PgConnection> holder_;
  std::string id_;
};

}  // namespace muster
