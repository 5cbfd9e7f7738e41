#pragma once

#include <string>
#include <vector>

#include "muster/result.h"
#include "muster/task.h"

namespace muster::serve {

// What migrations call that are driven here, and who is told of them.
class MigrationTasks {
 public:
  virtual ~MigrationTasks() = default;
  virtual std::vector<TaskExecutor*> executors() const = 0;
  // News of the migration are delivered from now on, as they come.
  virtual Status Deliver(const std::string& migration) = 0;
  // Waits, for a while, until all of them are delivered.
  virtual Status Settle(const std::string& migration) = 0;
};

}  // namespace muster::serve
