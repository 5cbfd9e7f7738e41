#pragma once

#include <optional>
#include <string>

#include "base/sqlite.h"
#include "task/load_fence.h"

namespace muster::task {

// A LoadFence in SQLite. Used by one thread.
class SqliteFence {
 public:
  explicit SqliteFence(LoadFence fence) : fence_(std::move(fence)) {}

  // Opens it: from now on no other session can load. As CheckOpen. A transaction by itself.
  Result<std::optional<std::string>> Take(SqliteDb& db);

  // Within a write transaction. As CheckHeld.
  Status Check(SqliteDb& db) const;

  // Within the same.
  Status Keep(SqliteDb& db, const std::string& result) const;

 private:
  Result<StoredLoad> Read(SqliteDb& db) const;

  const LoadFence fence_;
  int64_t epoch_ = 0;
};

}  // namespace muster::task
