#include "cli/executors.h"

#include "task/task.h"

namespace muster::cli {

Executors::Executors(Env& env, const std::string& store) {
  auto aws = task::MakeAwsExecutor(env);
  executors_.push_back(task::MakeExecExecutor());
  executors_.push_back(task::MakeHttpExecutor());
  executors_.push_back(task::MakeSqlExecutor());
  executors_.push_back(task::MakeCopyExecutor(env, store));
  executors_.push_back(task::MakeTransformExecutor());
  executors_.push_back(task::MakeReconcileExecutor());
  auto notifier = task::MakeNotifyExecutor(*aws, env, store);
  notifier_ = notifier.get();
  executors_.push_back(std::move(notifier));
  executors_.push_back(task::MakeStatusExecutor(env, store));
  executors_.push_back(std::move(aws));
}

std::vector<states::TaskExecutor*> Executors::all() const {
  std::vector<states::TaskExecutor*> all;
  for (const auto& executor : executors_) all.push_back(executor.get());
  return all;
}

}  // namespace muster::cli
