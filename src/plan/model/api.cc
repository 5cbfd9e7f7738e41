#include "muster/plan.h"

#include "plan/compile/compile.h"
#include "plan/explain/explain.h"
#include "plan/explain/what_if.h"
#include "plan/model/plan.h"
#include "plan/model/rules.h"

namespace muster::plan {

Result<Plan> LoadPlan(const std::string& path, const PlanOptions& options) {
  CheckedPlan checked = ReadPlan(path, options.variables);
  if (checked.plan) return *std::move(checked.plan);
  std::string all;
  for (const std::string& problem : checked.problems) all += (all.empty() ? "" : "\n") + problem;
  return Error{Code::kInvalid, all};
}

Result<Outlook> LoadOutlook(const std::string& path, const PlanOptions& options,
                            const PastRuns* past) {
  MUSTER_ASSIGN(Plan plan, LoadPlan(path, options));
  MUSTER_ASSIGN(const Profile* chosen, plan.FindProfile(options.profile));
  Profile profile = *chosen;
  if (past != nullptr) ApplyPast(*past, plan);
  for (const std::string& change : options.what_if)
    MUSTER_TRY(ApplyWhatIf(plan, profile.format, change));
  return MakeOutlook(std::move(plan), std::move(profile));
}

std::vector<std::string> CheckPlan(const std::string& path, const PlanOptions& options) {
  CheckedPlan checked = ReadPlan(path, options.variables);
  if (!checked.plan) return std::move(checked.problems);
  Problems problems(path);
  CheckFiles(*checked.plan, problems);
  std::vector<std::string> found = problems.Take();
  const auto profile = checked.plan->FindProfile(options.profile);
  const Status fits = profile ? CheckRunSize(*checked.plan, **profile) : Status();
  if (!fits) found.push_back(fits.error().ToString());
  return found;
}

Result<Json> ExplainPlan(const std::string& path, const PlanOptions& options) {
  MUSTER_ASSIGN(const Outlook outlook, LoadOutlook(path, options));
  return ToJson(outlook);
}

Result<std::string> CompilePlan(const std::string& path, const PlanOptions& options) {
  MUSTER_ASSIGN(const Outlook outlook, LoadOutlook(path, options));
  return ToJsonText(outlook.compiled.main.definition);
}

}  // namespace muster::plan
