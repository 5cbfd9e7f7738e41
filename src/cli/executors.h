#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "muster/task.h"
#include "task/notify_executor.h"

namespace muster::cli {

// How long the end of a run waits for the delivery of its news.
inline constexpr std::chrono::milliseconds kNewsPatience{10'000};

// Everything that Task states can call from this program.
class Executors {
 public:
  // `store`: where the status and the news of migrations are kept, by URL; opened when needed.
  Executors(Env& env, const std::string& store);

  std::vector<TaskExecutor*> all() const;
  task::Notifier& notifier() const { return *notifier_; }

 private:
  std::vector<std::unique_ptr<TaskExecutor>> executors_;
  task::Notifier* notifier_;
};

}  // namespace muster::cli
