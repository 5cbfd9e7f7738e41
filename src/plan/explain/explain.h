#pragma once

#include <string>
#include <vector>

#include "plan/compile/arrangement.h"
#include "plan/compile/compile.h"
#include "plan/compile/schedule.h"
#include "plan/explain/past_runs.h"
#include "plan/model/plan.h"

namespace muster::plan {

// A plan worked out for one profile: what runs when, for how long, at what cost.
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
  int64_t MostEvents() const;                  // upper bound for a single execution

  // Flows, DPU and prices exist only on AWS.
  bool IsAws() const { return profile.kind == ProfileKind::kAws; }
};

Outlook MakeOutlook(Plan plan, Profile profile);

// The same from a file, with the changes to try. Past runs, if given, override the file's
// estimates.
Result<Outlook> LoadOutlook(const std::string& path, const PlanOptions& options,
                            const PastRuns* past = nullptr);

struct Cost {
  double appflow = 0;
  double glue = 0;
  double step_functions = 0;

  double total() const { return appflow + glue + step_functions; }
};
Cost CostOf(const Outlook& outlook, bool slowest);

// Possible improvements, the most helpful first. Each can be tried with --what-if.
enum class AdviceKind { kParallel, kDpu, kStaging, kMerge, kWarning };
struct Advice {
  AdviceKind kind = AdviceKind::kWarning;
  std::string text;
  std::string what_if = {};
  SecondsRange saves = {};
};
std::vector<Advice> AdviseOn(const Outlook& outlook);

// Everything, for programs; docs/guide/plans.md lists the fields.
Json ToJson(const Outlook& outlook);

}  // namespace muster::plan
