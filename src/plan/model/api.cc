#include "muster/plan.h"

#include <algorithm>

#include "core/filled_secrets.h"
#include "core/secrets.h"
#include "plan/compile/compile.h"
#include "plan/compile/deployment.h"
#include "plan/explain/explain.h"
#include "plan/explain/prices.h"
#include "plan/explain/what_if.h"
#include "plan/model/graph.h"
#include "plan/model/name_template.h"
#include "plan/model/plan.h"
#include "plan/model/plan_json.h"
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
  if (!options.prices.empty()) {
    MUSTER_ASSIGN(plan.prices, ReadPriceFile(options.prices));
  }
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

std::vector<std::string> CheckPlanFile(const std::string& path, const PlanOptions& options) {
  return ReadPlan(path, options.variables).problems;
}

Result<std::string> CheckPlanSecrets(const std::string& path,
                                     const std::map<std::string, std::string>& inputs,
                                     const PlanOptions& options) {
  MUSTER_ASSIGN(const Plan plan, LoadPlan(path, options));
  MUSTER_ASSIGN(const Profile* const profile, plan.FindProfile(options.profile));
  if (profile->kind != ProfileKind::kLocal) return "";
  std::vector<std::pair<std::string, std::string>> places{
      {"source", profile->source}, {"target", profile->target}, {"staging", profile->staging}};
  for (const std::string& target : profile->notify) places.emplace_back("notify", target);
  std::string target;
  for (const auto& [name, text] : places) {
    const Names::Filled filled = Names(plan).Fill(text, inputs);
    const std::string where = path + ": " + name + " of profile " + profile->name;
    // As for tasks: only texts in which the plan has a reference may contain one.
    size_t written = 0;
    for (const std::string& piece : filled.pieces) written += CountSecretReferences(piece);
    const auto pieces = written > 0 ? filled.pieces : std::vector<std::string>();
    if (const Status own = CheckSecretOrigin(filled.text, pieces); !own)
      return own.error().Within(where);
    if (name == "target") target = filled.text;
    if (written == 0) continue;
    if (const Status plain = CheckSecretFillings(filled.text, pieces); !plain)
      return plain.error().Within(where);
    if (const auto resolved = ExpandSecrets(filled.text); !resolved)
      return resolved.error().Within(where);
  }
  const bool is_complete = std::ranges::all_of(
      plan.inputs, [&](const auto& input) { return input.second || inputs.contains(input.first); });
  return is_complete && !plan.scripts.empty() ? target : "";
}

Result<PlanSummary> SummarizePlan(const std::string& path, const PlanOptions& options) {
  MUSTER_ASSIGN(const Plan plan, LoadPlan(path, options));
  MUSTER_ASSIGN(const Profile* chosen, plan.FindProfile(options.profile));
  PlanSummary summary{.name = plan.name,
                      .profile = {.name = chosen->name, .kind = chosen->kind},
                      .profiles = {},
                      .inputs = plan.inputs};
  for (const Profile& profile : plan.profiles)
    summary.profiles.push_back({.name = profile.name, .kind = profile.kind});
  return summary;
}

Result<Json> ExplainPlan(const std::string& path, const PlanOptions& options) {
  MUSTER_ASSIGN(const Outlook outlook, LoadOutlook(path, options));
  return ToJson(outlook);
}

Result<Json> ExplainPlan(const std::string& path, store::Store& past, const PlanOptions& options,
                         Env& env) {
  MUSTER_ASSIGN(const Plan plan, LoadPlan(path, options));
  MUSTER_ASSIGN(const Profile* profile, plan.FindProfile(options.profile));
  states::States states(past, {}, {}, env);
  MUSTER_ASSIGN(const PastRuns runs, ReadPastRuns(past, states, plan, *profile));
  MUSTER_ASSIGN(const Outlook outlook, LoadOutlook(path, options, &runs));
  Json json = ToJson(outlook);
  if (!runs.runs.empty()) {
    json["past"] = {{"runs", runs.runs}, {"times", runs.times.size()}, {"rows", runs.rows.size()}};
  }
  return json;
}

Result<std::string> CompilePlan(const std::string& path, const PlanOptions& options) {
  MUSTER_ASSIGN(const Outlook outlook, LoadOutlook(path, options));
  return ToJsonText(outlook.compiled.main.definition);
}

Result<std::vector<DeploymentFile>> DeployPlan(const std::string& path,
                                               const PlanOptions& options) {
  MUSTER_ASSIGN(const Outlook outlook, LoadOutlook(path, options));
  MUSTER_ASSIGN(const auto deployment, MakeDeployment(outlook.plan, outlook.compiled));
  std::vector<DeploymentFile> files;
  for (const auto& [name, json] : deployment) {
    // CloudFormation accepts templates up to 1 MB: no whitespace.
    const bool compact = name == "template.json";
    files.push_back({.name = name, .text = (compact ? json.dump() : json.dump(2)) + "\n"});
  }
  return files;
}

Result<std::string> DrawPlan(const std::string& path, PlanPicture picture,
                             const PlanOptions& options) {
  MUSTER_ASSIGN(const Plan plan, LoadPlan(path, options));
  switch (picture) {
    case PlanPicture::kText:
      return DrawText(plan);
    case PlanPicture::kSvg:
      return DrawSvg(plan);
    case PlanPicture::kDot:
      return DrawDot(plan);
  }
  return Error{Code::kInvalid, "unknown kind of picture"};
}

Result<std::vector<Difference>> ComparePlans(const std::string& before, const std::string& after,
                                             const PlanOptions& options) {
  MUSTER_ASSIGN(const Plan first, LoadPlan(before, options));
  MUSTER_ASSIGN(const Plan second, LoadPlan(after, options));
  return Compare(first, second);
}

}  // namespace muster::plan
