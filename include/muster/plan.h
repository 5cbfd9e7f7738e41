#pragma once

#include <map>
#include <string>
#include <vector>

#include "muster/json.h"
#include "muster/result.h"

namespace muster {

// How a plan is to be read: docs/guide/plans.md describes its file.
struct PlanOptions {
  std::map<std::string, std::string> variables = {};  // instead of what the file gives them
  std::string profile = {};                           // empty: the file's first
  std::vector<std::string> what_if = {};              // changes to try: "dpu.feed-comments=20"
};

// Everything wrong in a plan, each as "file:line:column: reason (hint)". Empty: nothing.
std::vector<std::string> CheckPlan(const std::string& path, const PlanOptions& options = {});

// What a run of the plan would be: order, peaks, times, cost, advice. Calls nobody.
Result<Json> ExplainPlan(const std::string& path, const PlanOptions& options = {});

// The plan as a state machine in Amazon States Language, for States::Start. With a profile that
// runs on AWS its ranks are state machines of their own, which `muster plan compile` writes.
Result<std::string> CompilePlan(const std::string& path, const PlanOptions& options = {});

}  // namespace muster
