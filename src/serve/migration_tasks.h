#pragma once

#include <string>
#include <vector>

#include "muster/result.h"
#include "muster/task.h"

namespace muster::serve {

// The executors of migrations that this server drives, and their notifications.
class MigrationTasks {
 public:
  virtual ~MigrationTasks() = default;
  virtual std::vector<states::TaskExecutor*> executors() const = 0;
  // Starts delivering notifications of the migration.
  virtual Status Deliver(const std::string& migration) = 0;
  // Waits, within a limit, until all are delivered.
  virtual Status Settle(const std::string& migration) = 0;
};

}  // namespace muster::serve
