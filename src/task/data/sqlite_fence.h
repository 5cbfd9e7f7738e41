#pragma once

#include <optional>
#include <string>

#include "sql/sqlite.h"
#include "task/data/load_fence.h"

namespace muster::task {

// A LoadFence in SQLite. Used by one thread.
class SqliteFence {
 public:
  explicit SqliteFence(LoadFence fence) : fence_(std::move(fence)) {}

  // Opens it: from now on no other session can load. As CheckOpen. In a transaction of its own.
  Result<std::optional<std::string>> Take(sql::SqliteDb& db);

  // Within the load's transaction. As CheckHeld.
  Status Check(sql::SqliteDb& db) const;

  // Records the result, within the same transaction.
  Status Keep(sql::SqliteDb& db, const std::string& result) const;

 private:
  Result<StoredLoad> Read(sql::SqliteDb& db) const;

  const LoadFence fence_;
  int64_t epoch_ = 0;
};

}  // namespace muster::task
