#pragma once

#include <map>
#include <string>
#include <vector>

#include "muster/json.h"
#include "muster/result.h"

namespace muster::plan {

// How to read a plan: docs/guide/plans.md describes the file.
struct PlanOptions {
  std::map<std::string, std::string> variables = {};  // overrides the file's values
  std::string profile = {};                           // empty: the file's first
  std::vector<std::string> what_if = {};              // changes to try: "dpu.feed-comments=20"
};

// All problems of a plan, each as "file:line:column: reason (hint)". Empty: none.
std::vector<std::string> CheckPlan(const std::string& path, const PlanOptions& options = {});

// What a run of the plan would do: order, peaks, times, cost, advice. Makes no calls.
Result<Json> ExplainPlan(const std::string& path, const PlanOptions& options = {});

// The plan as a state machine in Amazon States Language, for States::Start. With an AWS profile its
// ranks are separate state machines, which `muster plan compile` writes.
Result<std::string> CompilePlan(const std::string& path, const PlanOptions& options = {});

}  // namespace muster::plan
