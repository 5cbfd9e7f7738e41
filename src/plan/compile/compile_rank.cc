#include "plan/compile/compile_rank.h"

#include "core/planted_bug.h"
#include "plan/compile/machine_data.h"

namespace muster::plan {
namespace {

class RankCompiler {
 public:
  RankCompiler(const Plan& plan, const ProfileStates& profile, const RankWork& work,
               const std::map<std::string, Json>& done, StateTable& table)
      : plan_(plan),
        profile_(profile),
        work_(work),
        done_(done),
        table_(table),
        rank_(plan.ranks[work.rank]) {}

  Machine Compile() {
    Json results;
    AddPhase(Phase::kExtract, work_.extract, results);
    AddPhase(Phase::kTransform, work_.transform, results);
    AddReconciliation(results);
    chain_.Add(Label() + "-Done", {{"Type", "Pass"}, {"Parameters", results}});
    table_[Label() + "-Done"] = {rank_.number, StateRole::kRankDone};
    const CountRange count = chain_.count();
    Json machine = chain_.Finish();
    machine["Comment"] =
        "Rank " + std::to_string(rank_.number) + (rank_.name.empty() ? "" : ": " + rank_.name);
    return {std::move(machine), count};
  }

 private:
  std::string Label() const { return "Rank" + std::to_string(rank_.number); }

  void AddPhase(Phase phase, const std::vector<Lane>& lanes, Json& results) {
    const bool extract = phase == Phase::kExtract;
    const std::string name(NameOf(phase));
    const std::string output = extract ? "appflow" : "glue";
    const bool goes_on = plan_.on_failure == FailurePolicy::kContinue;
    if (lanes.empty()) {
      results[output] = Json::object();
      if (goes_on) results[name + "Failed"] = Json::array();
      return;
    }
    Json input = InputFields(plan_);
    input["results"] = Json::object();
    if (extract) {
      input["polls"] = 0;
      input["attempt"] = 0;
    }
    Json selected = Json::object();
    Json branches = Json::array();
    CountRange inner;
    for (size_t i = 0; i < lanes.size(); ++i) {
      Chain branch;
      for (const std::string& task : lanes[i]) {
        AddTask(branch, phase, task);
        selected[task + ".$"] = "$[" + std::to_string(i) + "].results['" + task + "']";
      }
      inner.Add(branch.count());
      branches.push_back(branch.Finish());
    }
    chain_.Add(
        profile_.PhaseName(rank_, phase),
        {{"Type", "Parallel"},
         {"Comment", (extract ? "Extract the objects of rank " : "Transform and load rank ") +
                         std::to_string(rank_.number)},
         {"Parameters", input},
         {"Branches", branches},
         {"ResultSelector", {{"failed.$", "$[*].failed"}, {"results", selected}}},
         {"ResultPath", "$." + name}});
    chain_.Count(inner);
    if (plan_.on_failure == FailurePolicy::kFinishRank) AddVerdict(phase, name);
    results[output + ".$"] = "$." + name + ".results";
    if (goes_on) results[name + "Failed.$"] = "$." + name + ".failed";
  }

  // All tasks of the phase have ended: if one has failed, so has the rank.
  void AddVerdict(Phase phase, const std::string& name) {
    if (PLANTED_BUG(failures_are_swallowed)) return;
    const bool extract = phase == Phase::kExtract;
    const std::string failed = Label() + (extract ? "-ExtractFailed" : "-TransformFailed");
    chain_.Add(Label() + (extract ? "-Extracted" : "-Transformed"),
               {{"Type", "Choice"},
                {"Choices", Json::array({{{"Variable", "$." + name + ".failed[0]"},
                                          {"IsPresent", true},
                                          {"Next", failed}}})}});
    chain_.AddOther(
        failed,
        {{"Type", "Fail"},
         {"Error", "RankFailed"},
         {"CausePath", "States.Format('rank " + std::to_string(rank_.number) + ": failed to " +
                           name + " {}', States.JsonToString($." + name + ".failed[*].task))"}});
  }

  // Every row must have arrived, or the rank has failed.
  void AddReconciliation(Json& results) {
    std::optional<Json> state = profile_.Reconcile(rank_);
    if (!state) return;
    const bool goes_on = plan_.on_failure == FailurePolicy::kContinue;
    if (goes_on) results["reconcileFailed.$"] = std::string(kReconcilePath) + ".failed";
    const std::string name = profile_.ReconcileName(rank_);
    table_[name] = {rank_.number, StateRole::kReconcile};
    const auto done = done_.find("reconcile/" + std::to_string(rank_.number));
    if (done != done_.end()) {
      chain_.Add(name, {{"Type", "Pass"},
                        {"Result", {{"failed", Json::array()}, {kReconcileResult, done->second}}},
                        {"ResultPath", kReconcilePath}});
      return;
    }
    const std::string notify = "NotifyReconcileFailure-" + std::to_string(rank_.number);
    table_[notify] = {rank_.number, StateRole::kNotify};
    (*state)["Catch"] = CatchAll(kUnreconciledPath, notify);
    chain_.Add(name, *std::move(state));
    Json tell = profile_.NotifyUnreconciled(rank_);
    if (tell["Type"] == "Task") {
      const std::string untold = notify + "-Untold";
      tell["Catch"] = CatchAll("$.untold", untold);
      chain_.AddSide(untold, {{"Type", "Pass"},
                              {"Result", tell["ResultSelector"]},
                              {"ResultPath", tell["ResultPath"]}});
    }
    chain_.AddSide(notify, std::move(tell));
    if (goes_on) return;
    const std::string failed = Label() + "-ReconcileFailed";
    chain_.Add(Label() + "-Reconciled",
               {{"Type", "Choice"},
                {"Choices", Json::array({{{"Variable", std::string(kReconcilePath) + ".failed[0]"},
                                          {"IsPresent", true},
                                          {"Next", failed}}})}});
    chain_.AddOther(failed, {{"Type", "Fail"},
                             {"Error", "RankFailed"},
                             {"CausePath", std::string(kUnreconciledPath) + ".Cause"}});
  }

  void AddTask(Chain& branch, Phase phase, const std::string& task) {
    const auto done = done_.find(KeyOf(phase, task));
    if (done != done_.end()) {
      branch.Add(profile_.LastState(rank_, phase, task),
                 {{"Type", "Pass"}, {"Result", done->second}, {"ResultPath", ResultPathOf(task)}});
      Note(branch.names().back(), StateRole::kLast, phase, task);
      return;
    }
    const std::string notify = profile_.NotifyName(rank_, phase, task);
    const size_t before = branch.names().size();
    if (phase == Phase::kExtract) {
      profile_.AddExtract(branch, rank_, plan_.objects.at(task), notify);
    } else {
      profile_.AddTransform(branch, rank_, plan_.scripts.at(task), notify);
    }
    NoteTask(branch, before, phase, task);
    Note(notify, StateRole::kNotify, phase, task);
    Json state = profile_.Notify(rank_, phase, task);
    if (plan_.on_failure != FailurePolicy::kFailFast) {
      if (state["Type"] == "Task") {
        // A failed notification must not end the rank's other tasks.
        const std::string untold = StateName(notify + "-Untold");
        state["Catch"] = CatchAll("$.untold", untold);
        branch.AddSide(
            untold, {{"Type", "Pass"}, {"Result", {{"task", task}}}, {"ResultPath", "$.failed"}});
      }
      branch.AddSide(notify, std::move(state));
      return;
    }
    const std::string fail = StateName(notify + "-Fail");
    if (state["Type"] == "Task") state["Catch"] = CatchAll("$.untold", fail);
    state["Next"] = fail;
    branch.AddOther(notify, std::move(state));
    branch.AddOther(fail, {{"Type", "Fail"},
                           {"ErrorPath", ResultPathOf(task) + ".Error"},
                           {"CausePath", ResultPathOf(task) + ".Cause"}});
  }

  void Note(const std::string& state, StateRole role, Phase phase, const std::string& task) {
    table_[state] = {rank_.number, role, phase, task};
  }

  // Notes the states of a task: those that the branch has from an index on.
  void NoteTask(const Chain& branch, size_t from, Phase phase, const std::string& task) {
    const std::string first = branch.names()[from];
    const std::string last = profile_.LastState(rank_, phase, task);
    for (size_t i = from; i < branch.names().size(); ++i) {
      const std::string& name = branch.names()[i];
      const StateRole role = first == last   ? StateRole::kTask
                             : name == first ? StateRole::kFirst
                             : name == last  ? StateRole::kLast
                                             : StateRole::kStep;
      Note(name, role, phase, task);
    }
  }

  const Plan& plan_;
  const ProfileStates& profile_;
  const RankWork& work_;
  const std::map<std::string, Json>& done_;
  StateTable& table_;
  const Rank& rank_;
  Chain chain_;
};

}  // namespace

Json InputFields(const Plan& plan) {
  Json fields = Json::object();
  for (const auto& [name, value] : plan.inputs) {
    if (!plan.variables.contains(name)) fields[name + ".$"] = "$." + name;
  }
  return fields;
}

Machine CompileRank(const Plan& plan, const ProfileStates& profile, const RankWork& work,
                    const std::map<std::string, Json>& done, StateTable& table) {
  return RankCompiler(plan, profile, work, done, table).Compile();
}

}  // namespace muster::plan
