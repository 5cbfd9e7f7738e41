#include <filesystem>
#include <memory>

#include "cli/commands.h"
#include "cli/existing_store.h"
#include "cli/exit_codes.h"
#include "cli/plan_report.h"
#include "cli/table.h"
#include "core/file_output.h"
#include "core/json.h"
#include "muster/executors.h"
#include "muster/plan.h"
#include "muster/store.h"

namespace muster::cli {
namespace {

struct PlanCommandOptions {
  std::string action;
  std::vector<std::string> files;
  std::vector<std::string> variables;  // NAME=VALUE
  std::string profile;
  std::string target;
  std::vector<std::string> what_if;
  std::string prices;
  std::string format = "text";
  std::string out;
  bool store_given = false;  // by option or environment
};

class PlanRun {
 public:
  PlanRun(const PlanCommandOptions& options, Context& context)
      : options_(options), context_(context) {}

  Result<int> Run() {
    const size_t wanted = options_.action == "diff" ? 2 : 1;
    if (options_.action != "check" && options_.files.size() != wanted) {
      return Error{Code::kInvalid,
                   "'muster plan " + options_.action + "' needs " +
                       (wanted == 2 ? "two plans" : "one plan") + ", not " +
                       std::to_string(options_.files.size()),
                   "see 'muster plan --help'"};
    }
    MUSTER_TRY(ReadVariables());
    plan_options_.profile = options_.profile;
    plan_options_.prices = options_.prices;
    if (options_.action == "check") return Check();
    // Reports a broken plan as `check` does, one problem per line.
    for (const std::string& file : options_.files) {
      const auto problems = plan::CheckPlanFile(file, plan_options_);
      if (problems.empty()) continue;
      for (const std::string& problem : problems) context_.err << problem << '\n';
      return Error{Code::kInvalid, file + " has " + std::to_string(problems.size()) +
                                       (problems.size() == 1 ? " problem" : " problems")};
    }
    if (options_.action == "explain") return Explain();
    if (options_.action == "graph") return Graph();
    if (options_.action == "compile") return Compile();
    return Diff();
  }

 private:
  const std::string& file() const { return options_.files.front(); }

  Status ReadVariables() {
    for (const std::string& variable : options_.variables) {
      const size_t equals = variable.find('=');
      if (equals == 0 || equals == variable.npos)
        return Error{Code::kInvalid, "--set " + variable + ": not NAME=VALUE"};
      plan_options_.variables[variable.substr(0, equals)] = variable.substr(equals + 1);
    }
    return {};
  }

  Result<int> Check() {
    if (options_.files.empty()) return Error{Code::kInvalid, "'muster plan check' needs a plan"};
    Json list = Json::array();
    for (const std::string& path : options_.files) {
      for (const std::string& problem : ProblemsOf(path)) {
        list.push_back(problem);
        if (!context_.json) context_.out << problem << '\n';
      }
    }
    if (context_.json) context_.out << ToJsonText(list) << '\n';
    return list.empty() ? kDone : kUsage;
  }

  // Includes what a local run requires of this machine.
  std::vector<std::string> ProblemsOf(const std::string& path) {
    std::vector<std::string> problems = plan::CheckPlan(path, plan_options_);
    if (!problems.empty()) return problems;
    const auto summary = plan::SummarizePlan(path, plan_options_);
    if (!summary || summary->profile.kind != plan::ProfileKind::kLocal) return problems;
    const Status ready = task::CheckTransforms();
    if (!ready) problems.push_back(path + ": " + ready.error().ToString());
    return problems;
  }

  // Uses the past runs of the plan, if a store is given.
  Result<Json> Predict(const plan::PlanOptions& options) {
    if (!options_.store_given) return plan::ExplainPlan(file(), options);
    MUSTER_TRY(CheckStoreExists(context_.store));
    MUSTER_ASSIGN(const auto store, store::OpenStore(context_.store, context_.env));
    return plan::ExplainPlan(file(), *store, options, context_.env);
  }

  Result<int> Explain() {
    MUSTER_ASSIGN(const Json json, Predict(plan_options_));
    if (options_.what_if.empty()) {
      if (context_.json) {
        context_.out << ToJsonText(json) << '\n';
      } else {
        PrintOutlook(context_.out, json, context_.color);
      }
      return kDone;
    }
    plan::PlanOptions with_changes = plan_options_;
    with_changes.what_if = options_.what_if;
    MUSTER_ASSIGN(Json changed, Predict(with_changes));
    if (context_.json) {
      Json then{{"time", json["time"]}, {"peak", json["peak"]}};
      // Only on AWS.
      for (const char* field : {"dpu_total", "cost"}) {
        if (json.contains(field)) then[field] = json[field];
      }
      changed["what_if"] = {{"changes", options_.what_if}, {"before", std::move(then)}};
      context_.out << ToJsonText(changed) << '\n';
    } else {
      PrintChange(context_.out, json, changed, context_.color);
    }
    return kDone;
  }

  Result<int> Graph() {
    const auto picture = options_.format == "dot"   ? plan::PlanPicture::kDot
                         : options_.format == "svg" ? plan::PlanPicture::kSvg
                                                    : plan::PlanPicture::kText;
    MUSTER_ASSIGN(const std::string drawn, plan::DrawPlan(file(), picture, plan_options_));
    if (options_.out.empty()) {
      context_.out << drawn;
      return kDone;
    }
    MUSTER_TRY(ReplaceFile(options_.out, drawn));
    return kDone;
  }

  Result<int> Compile() {
    if (!options_.target.empty()) {
      MUSTER_ASSIGN(plan_options_.profile, ProfileFor(options_.target));
    }
    MUSTER_ASSIGN(const auto summary, plan::SummarizePlan(file(), plan_options_));
    if (summary.profile.kind == plan::ProfileKind::kLocal || options_.out.empty()) {
      MUSTER_ASSIGN(const std::string compiled, plan::CompilePlan(file(), plan_options_));
      const std::string text = Json::parse(compiled).dump(2) + "\n";
      if (options_.out.empty()) {
        context_.out << text;
      } else {
        MUSTER_TRY(ReplaceFile(options_.out, text));
      }
      return kDone;
    }
    return Deploy();
  }

  // Writes the files of a deployment into a folder.
  Result<int> Deploy() {
    MUSTER_ASSIGN(const auto files, plan::DeployPlan(file(), plan_options_));
    std::error_code error;
    std::filesystem::create_directories(options_.out, error);
    if (error)
      return Error{Code::kInvalid, options_.out + ": cannot create the folder: " + error.message()};
    Json names = Json::array();
    for (const auto& [name, text] : files) {
      const std::string path = options_.out + "/" + name;
      MUSTER_TRY(ReplaceFile(path, text));
      names.push_back(path);
      if (!context_.json) context_.out << path << '\n';
    }
    if (context_.json) context_.out << ToJsonText(names) << '\n';
    return kDone;
  }

  // The first profile of the kind that a target names.
  Result<std::string> ProfileFor(const std::string& target) {
    plan::PlanOptions any = plan_options_;
    any.profile.clear();
    MUSTER_ASSIGN(const auto summary, plan::SummarizePlan(file(), any));
    const plan::ProfileKind kind =
        target == "aws" ? plan::ProfileKind::kAws : plan::ProfileKind::kLocal;
    for (const auto& profile : summary.profiles) {
      const bool chosen = options_.profile.empty() || profile.name == options_.profile;
      if (profile.kind == kind && chosen) return profile.name;
    }
    return Error{Code::kInvalid, file() + ": no such profile is for " + target,
                 "add one with 'kind: " + target + "'"};
  }

  Result<int> Diff() {
    MUSTER_ASSIGN(const auto differences,
                  plan::ComparePlans(options_.files[0], options_.files[1], plan_options_));
    Json list = Json::array();
    Table table({{"WHERE"}, {"BEFORE"}, {"AFTER"}});
    for (const plan::Difference& difference : differences) {
      list.push_back({{"where", difference.where},
                      {"before", difference.before},
                      {"after", difference.after}});
      table.AddRow({{difference.where},
                    {difference.before.is_null() ? "" : ToJsonText(difference.before)},
                    {difference.after.is_null() ? "" : ToJsonText(difference.after)}});
    }
    if (context_.json) {
      context_.out << ToJsonText(list) << '\n';
    } else if (!differences.empty()) {
      table.Print(context_.out, context_.color);
    }
    return differences.empty() ? kDone : kNothingToDo;
  }

  const PlanCommandOptions& options_;
  Context& context_;
  plan::PlanOptions plan_options_;
};

}  // namespace

void AddPlanCommand(Command& app, Context& context) {
  Command command =
      app.AddCommand("plan", "Check, explain, draw, compile and compare ranked plans");
  command.Group("Run plans and state machines");
  auto options = std::make_shared<PlanCommandOptions>();
  command.AddOption("ACTION", options->action, "What to do")
      .Required()
      .OneOf({"check", "explain", "graph", "compile", "diff"});
  command.AddOption("FILE", options->files, "The plan; diff takes two");
  command.AddOption("--set", options->variables, "Set a variable; may be repeated")
      .TypeName("NAME=VALUE")
      .OneValuePerUse();
  command
      .AddOption("--profile", options->profile, "The plan's profile to use; the first by default")
      .TypeName("NAME");
  command
      .AddOption("--what-if", options->what_if,
                 "For explain, a change to try: dpu.SCRIPT=N, rows.OBJECT=N, parallel=RANK,RANK, "
                 "merge=RANK,RANK, "
                 "staging=parquet, pool.flows=N; may be repeated")
      .TypeName("CHANGE")
      .OneValuePerUse();
  command.AddOption("--prices", options->prices, "For explain: prices instead of the plan's")
      .TypeName("FILE");
  command.AddOption("--format", options->format, "For graph: what to draw it as")
      .OneOf({"text", "svg", "dot"});
  command.AddOption("--target", options->target, "For compile: the first profile of this kind")
      .OneOf({"local", "aws"});
  command
      .AddOption("--out", options->out,
                 "Where to write: a file for graph and compile, for aws a folder; standard output "
                 "by default")
      .TypeName("PATH");
  command.Footer(
      "  muster plan check plan.yaml\n"
      "  muster plan explain plan.yaml --what-if dpu.feed-comments=20\n"
      "  muster plan compile plan.yaml --target aws --set environment=dev --out build/");
  command.Action(context, [options, &context, &app] {
    options->store_given = app.Given("--store");
    return PlanRun(*options, context).Run();
  });
}

}  // namespace muster::cli
