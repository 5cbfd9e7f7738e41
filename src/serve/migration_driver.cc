#include "serve/migration_driver.h"

#include "muster/plan.h"

namespace muster::serve {
namespace {

constexpr int kThreads = 8;  // the default of 'muster run'

}  // namespace

MigrationDriver::MigrationDriver(const SiteStore& store, Env& env)
    : tasks_(store.make_tasks()), engine_(*store.store, env, tasks_->executors(), "serve") {}

Result<plan::Plan> MigrationDriver::Load(const plan::RunState& run) {
  const plan::PlanOptions options{.variables = run.variables, .profile = run.profile};
  std::string wrong;
  for (const std::string& problem : plan::CheckPlan(run.path, options)) {
    wrong += (wrong.empty() ? "" : "\n") + problem;
  }
  if (!wrong.empty()) {
    return Error{Code::kInvalid, wrong,
                 "if the plan's file has moved: muster retry " + run.id + " --plan FILE"};
  }
  return plan::LoadPlan(run.path, options);
}

Result<plan::RunState> MigrationDriver::Retry(const std::string& id, const plan::Plan& plan,
                                              const plan::ResumeOptions& options,
                                              const std::stop_token& stop) {
  MUSTER_ASSIGN(const plan::RunState run, engine_.runs().Resume(id, plan, options, stop));
  MUSTER_TRY(tasks_->Deliver(id));
  MUSTER_ASSIGN(plan::RunState ended, engine_.runs().Drive(run, kThreads, stop));
  MUSTER_TRY(tasks_->Settle(id));
  return ended;
}

}  // namespace muster::serve
