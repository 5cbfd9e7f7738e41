#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "muster/env.h"
#include "muster/json.h"
#include "muster/result.h"
#include "muster/states.h"
#include "muster/store.h"

namespace muster::plan {

// Ranked plans as files, which docs/guide/plans.md describes: check them, predict their runs, draw,
// compile and compare them. muster/runs.h runs them.
//
// Every function reads its files again. Except for CheckPlan, a plan with problems is kInvalid with
// one problem per line. Thread-safe.

// What runs know a task by: "extract/OBJECT" and "transform/SCRIPT".
MUSTER_EXPORT std::string KeyOf(Phase phase, const std::string& task);

// Where a profile's tasks run: in Muster's processes, or as jobs of AWS services.
enum class ProfileKind { kLocal, kAws };

// How to read a plan.
struct PlanOptions {
  std::map<std::string, std::string> variables = {};  // overrides the file's values
  std::string profile = {};                           // empty: the file's first
  std::vector<std::string> what_if = {};              // changes to try: "dpu.feed-comments=20"
  std::string prices = {};                            // a file of prices instead of the plan's
};

// All problems of a plan, each as "file:line:column: reason (hint)". Empty: none. Also checks that
// its scripts exist, and that a run fits in a store.
MUSTER_EXPORT std::vector<std::string> CheckPlan(const std::string& path,
                                                 const PlanOptions& options = {});

// The problems of the file itself: enough to explain, draw or compare it.
MUSTER_EXPORT std::vector<std::string> CheckPlanFile(const std::string& path,
                                                     const PlanOptions& options = {});

// Whether this process could use the chosen profile's source, target, staging folder and targets of
// notifications in a run with these inputs. kInvalid: a secret reference cannot be resolved, or an
// input adds one, or could change where a URL with one leads. Returns the URL that scripts load
// into, with references instead of secrets. Empty: the profile has none, as on AWS, or an input
// is missing.
MUSTER_EXPORT Result<std::string> CheckPlanSecrets(const std::string& path,
                                                   const std::map<std::string, std::string>& inputs,
                                                   const PlanOptions& options = {});

// What a plan says about itself.
struct PlanSummary {
  struct Profile {
    std::string name;
    ProfileKind kind = ProfileKind::kLocal;
  };

  std::string name;
  Profile profile;                // the chosen one
  std::vector<Profile> profiles;  // all, in the file's order
  // The inputs of a run, with their defaults.
  std::map<std::string, std::optional<std::string>> inputs;
};
MUSTER_EXPORT Result<PlanSummary> SummarizePlan(const std::string& path,
                                                const PlanOptions& options = {});

// What a run of the plan would do: order, peaks, times, cost, advice. Makes no calls.
MUSTER_EXPORT Result<Json> ExplainPlan(const std::string& path, const PlanOptions& options = {});

// The same, with times and rows of the newest ten runs of the plan that `past` holds in the place
// of the plan's estimates; "past" in the result says which.
MUSTER_EXPORT Result<Json> ExplainPlan(const std::string& path, store::Store& past,
                                       const PlanOptions& options, Env& env);

// The plan as a state machine in Amazon States Language, for States::Start. With an AWS profile its
// ranks are separate state machines, which DeployPlan gives.
MUSTER_EXPORT Result<std::string> CompilePlan(const std::string& path,
                                              const PlanOptions& options = {});

// The files of a deployment on AWS: state machines, policies, a CloudFormation template. kInvalid:
// a value is needed now that only a run provides.
struct DeploymentFile {
  std::string name;
  std::string text;
};
MUSTER_EXPORT Result<std::vector<DeploymentFile>> DeployPlan(const std::string& path,
                                                             const PlanOptions& options = {});

// The ranks and their needs as a picture: for terminals, for browsers, for Graphviz.
enum class PlanPicture { kText, kSvg, kDot };
MUSTER_EXPORT Result<std::string> DrawPlan(const std::string& path, PlanPicture picture,
                                           const PlanOptions& options = {});

// How two plans differ in what they mean.
struct Difference {
  std::string where;  // "ranks.600.transform"
  Json before;        // null: it was not there
  Json after;
};
MUSTER_EXPORT Result<std::vector<Difference>> ComparePlans(const std::string& before,
                                                           const std::string& after,
                                                           const PlanOptions& options = {});

}  // namespace muster::plan
