#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "muster/task.h"
#include "task/task.h"

namespace muster::cli {

// How long the end of a run waits for its notifications to be delivered.
inline constexpr std::chrono::milliseconds kNewsPatience{10'000};

// Everything that Task states can call from this program.
class Executors {
 public:
  // `store`: URL of the store for the status and notifications of migrations; opened when needed.
  Executors(Env& env, const std::string& store);

  std::vector<states::TaskExecutor*> all() const;
  task::Notifier& notifier() const { return *notifier_; }

 private:
  std::vector<std::unique_ptr<states::TaskExecutor>> executors_;
  task::Notifier* notifier_;
};

}  // namespace muster::cli
