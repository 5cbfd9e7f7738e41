#include "serve/migration_driver.h"

#include "muster/plan.h"

namespace muster::serve {
namespace {

constexpr int kThreads = 8;  // as many as 'muster run' has by itself

}  // namespace

MigrationDriver::MigrationDriver(const SiteStore& store, Env& env)
    : tasks_(store.make_tasks()),
      gate_(tasks_->executors()),
      states_(*store.store, env, {&gate_},
              StatesOptions{
                  .owner = "serve", .lease = milliseconds(15'000), .idle_wait = milliseconds(100)}),
      runs_(*store.store, states_, env, &gate_) {}

Result<plan::Plan> MigrationDriver::Load(const plan::RunState& run) {
  const PlanOptions options{.variables = run.variables};
  std::string wrong;
  for (const std::string& problem : CheckPlan(run.path, options)) {
    wrong += (wrong.empty() ? "" : "\n") + problem;
  }
  if (!wrong.empty()) {
    return Error{Code::kInvalid, wrong,
                 "if the plan's file is elsewhere now: muster retry " + run.id + " --plan FILE"};
  }
  return plan::LoadPlan(run.path, options);
}

Result<plan::RunState> MigrationDriver::Retry(const std::string& id, const plan::Plan& plan,
                                              const plan::ResumeOptions& options,
                                              const std::stop_token& stop) {
  MUSTER_ASSIGN(const plan::RunState run, runs_.Resume(id, plan, options, stop));
  MUSTER_TRY(tasks_->Deliver(id));
  MUSTER_ASSIGN(plan::RunState ended, runs_.Drive(run, kThreads, stop));
  MUSTER_TRY(tasks_->Settle(id));
  return ended;
}

}  // namespace muster::serve
