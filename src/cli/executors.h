#pragma once

#include <memory>
#include <string>
#include <vector>

#include "muster/task.h"

namespace muster::cli {

// Everything that Task states can call from this program.
class Executors {
 public:
  // `store`: where the status of migrations is kept, by URL; opened when it is needed.
  Executors(Env& env, const std::string& store);

  std::vector<TaskExecutor*> all() const;

 private:
  std::vector<std::unique_ptr<TaskExecutor>> executors_;
};

}  // namespace muster::cli
