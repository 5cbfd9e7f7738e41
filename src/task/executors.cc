#include "muster/executors.h"

#include "sql/duckdb.h"
#include "task/aws/aws_executor.h"
#include "task/call/exec_executor.h"
#include "task/call/http_executor.h"
#include "task/call/sql_executor.h"
#include "task/call/status_executor.h"
#include "task/data/copy_executor.h"
#include "task/data/reconcile_executor.h"
#include "task/data/transform_executor.h"
#include "task/notify/notify_executor.h"
#include "task/notify/outbox.h"

namespace muster::task {
namespace {

using Executors = std::vector<std::unique_ptr<states::TaskExecutor>>;

// Several executors as one that owns them.
class StandardExecutor final : public states::ExecutorWrapper {
 public:
  // `all`: the owned ones, in the order in which they are asked. `notifier` uses one of the others.
  StandardExecutor(std::vector<states::TaskExecutor*> all, Executors others,
                   std::unique_ptr<Notifier> notifier)
      : ExecutorWrapper(std::move(all)),
        others_(std::move(others)),
        notifier_(std::move(notifier)) {}

 private:
  const Executors others_;
  const std::unique_ptr<Notifier> notifier_;  // destroyed first: it delivers through the others
};

std::unique_ptr<states::TaskExecutor> MakeStandard(const StoreHandle& store, Env& env) {
  Executors others;
  auto aws = MakeAwsExecutor(env);
  auto notifier = MakeNotifyExecutor(*aws, env, store);
  others.push_back(MakeExecExecutor());
  others.push_back(MakeHttpExecutor());
  others.push_back(MakeSqlExecutor());
  others.push_back(MakeCopyExecutor(env, store));
  others.push_back(MakeTransformExecutor());
  others.push_back(MakeReconcileExecutor());
  others.push_back(MakeStatusExecutor(env, store));
  others.push_back(std::move(aws));
  std::vector<states::TaskExecutor*> all{notifier.get()};
  for (const auto& executor : others) all.push_back(executor.get());
  return std::make_unique<StandardExecutor>(std::move(all), std::move(others), std::move(notifier));
}

}  // namespace

std::unique_ptr<states::TaskExecutor> NewExecutors(store::Store& store, Env& env) {
  return MakeStandard(store, env);
}

std::unique_ptr<states::TaskExecutor> NewExecutors(const std::string& store_url, Env& env) {
  return MakeStandard(store_url, env);
}

Result<std::vector<SentNotification>> ReadNotifications(store::Store& store, const std::string& run,
                                                        Env& env) {
  MUSTER_ASSIGN(std::vector<Letter> letters, Outbox(store, env).List(run));
  std::vector<SentNotification> sent;
  for (Letter& letter : letters) {
    sent.push_back({.target = std::move(letter.news.target),
                    .subject = std::move(letter.news.subject),
                    .dedupe = std::move(letter.news.dedupe),
                    .delivered = letter.delivered,
                    .error = std::move(letter.error)});
  }
  return sent;
}

Status CheckTransforms() { return sql::DuckDb::CheckLibrary(); }

}  // namespace muster::task
