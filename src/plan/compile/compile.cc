#include "plan/compile/compile.h"

#include <filesystem>

#include "plan/compile/compile_rank.h"
#include "plan/compile/profile_states.h"
#include "plan/model/order.h"
#include "states/states.h"

namespace muster::plan {
namespace {

constexpr const char* kFail = "FailMigration";
constexpr const char* kFailed = "MigrationFailed";
constexpr size_t kIncarnationBytes = 32;  // as Env::NewId makes it

class PlanCompiler {
 public:
  PlanCompiler(const Plan& plan, const Profile& profile, const CompileOptions& options)
      : plan_(plan), options_(options), states_(NewProfileStates(plan, profile, options.run)) {}

  CompiledPlan Compile(const Step& root) {
    Chain chain;
    Json initialize = states_->Initialize();
    initialize["ResultPath"] = "$.initResult";
    initialize.emplace("Retry", RetryService());
    initialize["Catch"] = CatchAll("$.failure", kFail);
    chain.Add("InitializeMigration", std::move(initialize));
    AddStep(chain, root, "$", kFail);
    if (plan_.on_failure == FailurePolicy::kContinue) AddVerdict(chain);
    Json collected = InputFields(plan_);
    collected["initResult.$"] = "$.initResult";
    collected["appflow"] = std::move(appflow_);
    collected["glue"] = std::move(glue_);
    chain.Add("CollectResults", {{"Type", "Pass"}, {"Parameters", std::move(collected)}});
    Json complete = states_->Update(RunStatus::kCompleted);
    complete["ResultPath"] = "$.completeResult";
    complete.emplace("Retry", RetryService());
    complete["Catch"] = CatchAll("$.failure", kFail);
    chain.Add("CompleteMigration", std::move(complete));
    const CountRange count = WithStartAndEnd(chain.count());
    Json fail = states_->Update(RunStatus::kFailed);
    fail["ResultPath"] = "$.failResult";
    fail.emplace("Retry", RetryService());
    fail["Catch"] = CatchAll("$.untold", kFailed);
    fail["Next"] = kFailed;
    chain.AddOther(kFail, std::move(fail));
    chain.AddOther(
        kFailed,
        {{"Type", "Fail"}, {"ErrorPath", "$.failure.Error"}, {"CausePath", "$.failure.Cause"}});
    Json definition = chain.Finish();
    definition["Comment"] = "Plan " + plan_.name;
    return {{std::move(definition), count}, std::move(ranks_), std::move(table_)};
  }

 private:
  static CountRange WithStartAndEnd(CountRange count) {
    count.Add({{0, 2}, {0, 2}});
    return count;
  }

  // Appends the states of a step. Results go below `path`; a failed rank goes to the state
  // `failed`, with the error at `$.failure`.
  void AddStep(Chain& chain, const Step& step, const std::string& path, const std::string& failed) {
    switch (step.kind) {
      case Step::Kind::kRank:
        return AddRank(chain, step.work, path, failed);
      case Step::Kind::kSequence:
        for (const Step& part : step.steps) AddStep(chain, part, path, failed);
        return;
      case Step::Kind::kParallel:
        return AddParallel(chain, step, path, failed);
    }
  }

  void AddRank(Chain& chain, const RankWork& work, const std::string& path,
               const std::string& failed) {
    const Rank& rank = plan_.ranks[work.rank];
    const std::string name = "Rank" + std::to_string(rank.number);
    const std::string field = "rank" + std::to_string(rank.number);
    Machine machine = CompileRank(plan_, *states_, work, options_.done, table_);
    const bool child = states_->HasChildMachines() && !options_.inline_ranks;
    const std::string from = child ? "$.Output." : "$[0].";
    Json selected{{"appflow.$", from + "appflow"}, {"glue.$", from + "glue"}};
    if (plan_.on_failure == FailurePolicy::kContinue) {
      std::vector<std::string> lists{"extractFailed", "transformFailed"};
      if (states_->Reconcile(rank)) lists.emplace_back("reconcileFailed");
      for (const std::string& list : lists) {
        selected[list + ".$"] = from + list;
        failure_lists_.push_back(path + "." + field + "." + list);
      }
    }
    Json state;
    if (child) {
      state = states_->StartRank(rank, InputFields(plan_));
      ranks_.push_back({rank.number, {machine.definition, WithStartAndEnd(machine.count)}});
    } else {
      state = {{"Type", "Parallel"},
               {"Parameters", InputFields(plan_)},
               {"Branches", Json::array({std::move(machine.definition)})}};
      chain.Count(machine.count);
    }
    state["Comment"] = rank.name.empty() ? name : rank.name;
    state["ResultSelector"] = selected;
    state["ResultPath"] = "$." + field;
    if (!failed.empty()) state["Catch"] = CatchAll("$.failure", failed);
    chain.Add(name, std::move(state));
    for (const Lane& lane : work.extract) {
      for (const std::string& task : lane)
        appflow_[task + ".$"] = path + "." + field + ".appflow['" + task + "']";
    }
    for (const Lane& lane : work.transform) {
      for (const std::string& task : lane)
        glue_[task + ".$"] = path + "." + field + ".glue['" + task + "']";
    }
  }

  void AddParallel(Chain& chain, const Step& step, const std::string& path,
                   const std::string& failed) {
    const std::string number = std::to_string(++parallels_);
    const std::string field = "side" + number;
    const bool fail_fast = plan_.on_failure == FailurePolicy::kFailFast;
    Json branches = Json::array();
    Json choices = Json::array();
    std::vector<std::pair<std::string, Json>> passes;
    CountRange inner;
    for (size_t i = 0; i < step.steps.size(); ++i) {
      const std::string index = std::to_string(i);
      const std::string stopped = "Side" + number + "-" + index + "-Stopped";
      Chain branch;
      AddStep(branch, step.steps[i], path + "." + field + "[" + index + "]",
              fail_fast ? "" : stopped);
      if (!fail_fast) {
        branch.AddSide(stopped, {{"Type", "Pass"}});
        const std::string pass = "Side" + number + "-" + index + "-Failed";
        choices.push_back({{"Variable", "$." + field + "[" + index + "].failure"},
                           {"IsPresent", true},
                           {"Next", pass}});
        passes.emplace_back(pass, Json{{"Type", "Pass"},
                                       {"InputPath", "$." + field + "[" + index + "].failure"},
                                       {"ResultPath", "$.failure"},
                                       {"Next", failed}});
      }
      inner.Add(branch.count());
      branches.push_back(branch.Finish());
    }
    Json state{{"Type", "Parallel"},
               {"Comment", "Ranks that need not wait for each other"},
               {"Parameters", InputFields(plan_)},
               {"Branches", std::move(branches)},
               {"ResultPath", "$." + field}};
    if (fail_fast && !failed.empty()) state["Catch"] = CatchAll("$.failure", failed);
    chain.Add("Side" + number, std::move(state));
    chain.Count(inner);
    if (fail_fast) return;
    chain.Add("Side" + number + "-Ended", {{"Type", "Choice"}, {"Choices", std::move(choices)}});
    for (auto& [name, pass] : passes) chain.AddOther(name, std::move(pass));
    // A branch cannot end in a Choice.
    if (path != "$") chain.Add("Side" + number + "-Done", {{"Type", "Pass"}});
  }

  // If ranks continue after failures, the migration fails at its end.
  void AddVerdict(Chain& chain) {
    Json choices = Json::array();
    for (const std::string& list : failure_lists_) {
      choices.push_back(
          {{"Variable", list + "[0]"}, {"IsPresent", true}, {"Next", "ReportFailures"}});
    }
    chain.Add("AllSucceeded", {{"Type", "Choice"}, {"Choices", std::move(choices)}});
    chain.AddOther("ReportFailures",
                   {{"Type", "Pass"},
                    {"Result",
                     {{"Error", "MigrationFailed"},
                      {"Cause", "tasks have failed, and the plan went on: see the notifications"}}},
                    {"ResultPath", "$.failure"},
                    {"Next", kFail}});
  }

  const Plan& plan_;
  const CompileOptions& options_;
  const std::unique_ptr<ProfileStates> states_;
  std::vector<RankMachine> ranks_;
  StateTable table_;
  std::vector<std::string> failure_lists_;
  Json appflow_ = Json::object();
  Json glue_ = Json::object();
  int parallels_ = 0;
};

}  // namespace

Status CheckSize(const Plan& plan, const std::string& definition) {
  if (definition.size() <= states::kMaxDefinitionBytes) return {};
  return Error{Code::kInvalid,
               plan.path + ": its state machine has " + std::to_string(definition.size()) +
                   " bytes; the limit is " + std::to_string(states::kMaxDefinitionBytes),
               "split it into several plans"};
}

Status CheckRunSize(const Plan& plan, const Profile& profile) {
  std::error_code unknown;
  const RunIdentity longest{.name = std::string(kMaxRunNameBytes, 'n'),
                            .id = std::string(kIncarnationBytes, 'i'),
                            .folder = std::filesystem::current_path(unknown).string()};
  const CompiledPlan compiled =
      Compile(plan, profile, Arrange(plan, Order(plan)), {.inline_ranks = true, .run = longest});
  return CheckSize(plan, ToJsonText(compiled.main.definition));
}

CompiledPlan Compile(const Plan& plan, const Profile& profile, const Arrangement& arrangement,
                     const CompileOptions& options) {
  return PlanCompiler(plan, profile, options).Compile(arrangement.root);
}

}  // namespace muster::plan
