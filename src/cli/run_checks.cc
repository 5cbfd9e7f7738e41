#include "cli/run_checks.h"

#include "muster/executors.h"

namespace muster::cli {

// Without credentials of AWS every call would fail, and be retried for minutes.
Result<std::string> CheckProfile(const plan::PlanSummary::Profile& profile, const std::string& path,
                                 const plan::PlanOptions& options,
                                 const std::map<std::string, std::string>& inputs, Env& env,
                                 std::stop_token stop) {
  if (profile.kind != plan::ProfileKind::kAws) {
    MUSTER_TRY(task::CheckTransforms());
    return plan::CheckPlanSecrets(path, inputs, options);
  }
  const Status ready = task::CheckAwsAccess(env, std::move(stop));
  if (ready) return "";
  Error error = ready.error().Within("the profile " + profile.name + " runs on AWS");
  if (error.hint.empty()) error.hint = "see the profiles of the plan: --profile chooses one";
  return error;
}

Status CheckResumable(const plan::RunState& run, Env& env, std::stop_token stop) {
  const plan::PlanOptions options{
      .variables = run.variables, .profile = run.profile, .what_if = {}, .prices = {}};
  const auto problems = plan::CheckPlan(run.path, options);
  if (!problems.empty()) {
    return Error{Code::kInvalid, problems.front(),
                 "'muster plan check " + run.path + "' shows all " +
                     std::to_string(problems.size()) + " problems"};
  }
  MUSTER_ASSIGN(const auto summary, plan::SummarizePlan(run.path, options));
  MUSTER_TRY(CheckProfile(summary.profile, run.path, options, run.inputs, env, std::move(stop)));
  return {};
}

}  // namespace muster::cli
