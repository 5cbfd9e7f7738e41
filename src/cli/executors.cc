#include "cli/executors.h"

#include "task/aws_executor.h"
#include "task/exec_executor.h"
#include "task/http_executor.h"

namespace muster::cli {

Executors::Executors(Env& env) {
  executors_.push_back(task::MakeExecExecutor());
  executors_.push_back(task::MakeHttpExecutor());
  executors_.push_back(task::MakeAwsExecutor(env));
}

std::vector<TaskExecutor*> Executors::all() const {
  std::vector<TaskExecutor*> all;
  for (const auto& executor : executors_) all.push_back(executor.get());
  return all;
}

}  // namespace muster::cli
