#pragma once

#include <memory>
#include <vector>

#include "muster/task.h"

namespace muster::cli {

// Everything that Task states can call from this program.
class Executors {
 public:
  explicit Executors(Env& env);

  std::vector<TaskExecutor*> all() const;

 private:
  std::vector<std::unique_ptr<TaskExecutor>> executors_;
};

}  // namespace muster::cli
