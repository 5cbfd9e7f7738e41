#pragma once

#include <string>
#include <vector>

#include "plan/compile/arrangement.h"
#include "plan/compile/compile.h"
#include "plan/compile/schedule.h"
#include "plan/explain/past_runs.h"
#include "plan/model/plan.h"

namespace muster::plan {

// A plan with a profile, worked out: what runs when, for how long, at what cost.
struct Outlook {
  Plan plan;
  Profile profile;
  Arrangement arrangement = {};
  Schedule quick = {};
  Schedule slow = {};
  CompiledPlan compiled = {};

  int64_t Rows() const;
  int64_t DpuTotal() const;
  StateCount Transitions(bool slowest) const;  // of all executions together
  int64_t MostEvents() const;                  // of any one execution, at most

  // Whether it runs on AWS: only there are flows, DPU and prices.
  bool IsAws() const { return profile.kind == ProfileKind::kAws; }
};

Outlook MakeOutlook(Plan plan, Profile profile);

// The same from a file, with the changes that are to be tried; what past runs tell, if it is given,
// counts before what the file says.
Result<Outlook> LoadOutlook(const std::string& path, const PlanOptions& options,
                            const PastRuns* past = nullptr);

struct Cost {
  double appflow = 0;
  double glue = 0;
  double step_functions = 0;

  double total() const { return appflow + glue + step_functions; }
};
Cost CostOf(const Outlook& outlook, bool slowest);

// What could be better, the most helpful first. Each is something that --what-if can try.
struct Advice {
  std::string kind;  // parallel, dpu, staging, merge, warning
  std::string text;
  std::string what_if = {};
  SecondsRange saves = {};
};
std::vector<Advice> AdviseOn(const Outlook& outlook);

// All of it for programs; docs/guide/plans.md names the fields.
Json ToJson(const Outlook& outlook);

}  // namespace muster::plan
