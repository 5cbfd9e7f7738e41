#include <iostream>
#include <string>

#include "muster/env.h"
#include "muster/executors.h"
#include "muster/plan.h"
#include "muster/result.h"
#include "muster/runs.h"
#include "muster/states.h"
#include "muster/store.h"

namespace {

using muster::plan::RunState;
using muster::states::TaskCall;
using muster::states::TaskContext;
using muster::states::TaskOutcome;

// An executor of our own, in the place of Muster's for this resource.
class PrintStatus final : public muster::states::TaskExecutor {
 public:
  bool Runs(std::string_view resource) const override { return resource == "muster:status"; }

  TaskOutcome Start(const TaskCall& call, TaskContext& /*context*/) override {
    std::cout << call.input["migration_id"].get<std::string>() << " is "
              << call.input["status"].get<std::string>() << "\n";
    return muster::states::TaskSuccess{call.input};
  }
  TaskOutcome Poll(const TaskCall& call, const muster::Json& /*resume*/,
                   TaskContext& context) override {
    return Start(call, context);
  }
  void Cancel(const TaskCall& /*call*/, const muster::Json& /*resume*/,
              TaskContext& /*context*/) override {}
};

// Starts a run of the plan, or resumes the one that an earlier process has left or that has failed.
muster::Result<RunState> Begin(muster::plan::RunEngine& engine, const std::string& path,
                               const std::string& migration) {
  auto run = engine.Start(path, {.inputs = {{"migrationId", migration}}});
  if (run || run.error().code != muster::Code::kConflict) return run;
  muster::plan::RunObserver nothing;
  return engine.Resume(migration, {}, nothing, {});
}

muster::Status RunPlan(const std::string& path, const std::string& migration) {
  muster::Env& env = muster::RealEnv();
  MUSTER_ASSIGN(const auto store, muster::store::OpenStore("sqlite:runs.db", env));
  PrintStatus status;
  const auto standard = muster::task::NewExecutors(*store, env);
  const auto engine =
      muster::plan::NewRunEngine(*store, {&status, standard.get()}, {.threads = 2}, env);

  MUSTER_ASSIGN(const RunState begun, Begin(*engine, path, migration));
  MUSTER_ASSIGN(const RunState run, engine->Drive(begun, {}));

  MUSTER_ASSIGN(const auto report, engine->Report(run));
  for (const muster::plan::RankReport& rank : report.ranks) {
    for (const muster::plan::TaskReport& task : rank.tasks) {
      std::cout << "rank " << rank.number << ", " << KeyOf(task.phase, task.name) << ": "
                << NameOf(task.state) << ", " << task.rows.value_or(0) << " rows\n";
    }
  }
  if (run.status == muster::RunStatus::kCompleted) return {};
  return muster::Error{muster::Code::kInternal, run.error + ": " + run.cause};
}

}  // namespace

// run_plan PLAN MIGRATION
int main(int argc, char** argv) {
  if (argc != 3) return 2;
  if (muster::Status status = RunPlan(argv[1], argv[2]); !status) {
    std::cerr << status.error().ToString() << "\n";
    return 1;
  }
  return 0;
}
