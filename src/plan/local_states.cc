#include <algorithm>
#include <filesystem>

#include "plan/name_template.h"
#include "plan/profile_states.h"

namespace muster::plan {
namespace {

// Tasks that this program runs itself.
class LocalStates final : public ProfileStates {
 public:
  LocalStates(const Plan& plan, const Profile& profile)
      : plan_(plan), profile_(profile), names_(plan) {}

  bool HasChildMachines() const override { return false; }

  std::string PhaseName(const Rank& rank, Phase phase) const override {
    return (phase == Phase::kExtract ? "Extract-Rank" : "Transform-Rank") +
           std::to_string(rank.number);
  }

  std::string NotifyName(const Rank& rank, Phase phase, const std::string& task) const override {
    return StateName(
        (phase == Phase::kExtract ? "NotifyExtractFailure-" : "NotifyTransformFailure-") +
        std::to_string(rank.number) + "-" + task);
  }

  std::string LastState(const Rank& rank, Phase phase, const std::string& task) const override {
    return StateName((phase == Phase::kExtract ? "Extract-" : "Transform-") +
                     std::to_string(rank.number) + "-" + task);
  }

  void AddExtract(Chain& chain, const Rank& rank, const ExtractTask& task,
                  const std::string& failed) const override {
    Json parameters;
    names_.Put(parameters, "source", profile_.source);
    parameters["object"] = task.name;
    names_.Put(parameters, "staging", profile_.staging);
    parameters["format"] = profile_.format == StagingFormat::kParquet ? "parquet" : "jsonl";
    names_.Put(parameters, "tenant", "{tenantId}");
    names_.Put(parameters, "migration", "{migrationId}");
    chain.Add(LastState(rank, Phase::kExtract, task.name),
              TaskState("muster:copy", parameters, task.name, task.rules, failed));
  }

  void AddTransform(Chain& chain, const Rank& rank, const TransformTask& task,
                    const std::string& failed) const override {
    Json arguments;
    names_.Put(arguments, "TENANT_ID", "{tenantId}");
    arguments["ENTITY_NAME"] = task.name;
    arguments["TARGET_SCHEMA"] = task.schema;
    arguments["TARGET_TABLE"] = task.table;
    Json parameters{
        {"script", (std::filesystem::path(plan_.folder) / task.file).lexically_normal().string()},
        {"plan_folder", plan_.folder}};
    names_.Put(parameters, "staging", profile_.staging);
    names_.Put(parameters, "target", profile_.target);
    parameters["arguments"] = arguments;
    chain.Add(LastState(rank, Phase::kTransform, task.name),
              TaskState("muster:transform", parameters, task.name, task.rules, failed));
  }

  Json Notify(const Rank& rank, Phase phase, const std::string& task) const override {
    const Json marker{{"task", task}};
    if (profile_.notify.empty())
      return {{"Type", "Pass"}, {"Result", marker}, {"ResultPath", "$.failed"}};
    const std::string what = phase == Phase::kExtract ? "Extraction" : "Transformation";
    Json parameters{{"targets", profile_.notify},
                    {"subject", plan_.name + ": " + what + " of " + task + " failed"},
                    {"message", FailureMessage(rank, phase, task, what)}};
    if (std::find(profile_.notify.begin(), profile_.notify.end(), "sns") != profile_.notify.end())
      names_.Put(parameters, "topic", plan_.names.topic);
    // Another attempt has another name, and its failures are news again.
    parameters["dedupe.$"] =
        "States.Format('{}/" + std::to_string(rank.number) + "/" + task + "', $$.Execution.Name)";
    return {{"Type", "Task"},           {"Resource", "muster:notify"}, {"Parameters", parameters},
            {"ResultSelector", marker}, {"ResultPath", "$.failed"},    {"Retry", RetryService()}};
  }

  Json Initialize() const override { return Status("IN_PROGRESS", "started_at"); }
  Json Update(const std::string& status) const override {
    return Status(status, status == "COMPLETED" ? "completed_at" : "");
  }

  Json StartRank(const Rank& /*rank*/, const Json& /*input*/) const override { return {}; }

 private:
  static Json TaskState(const std::string& resource, Json parameters, const std::string& task,
                        const PhaseRules& rules, const std::string& failed) {
    const std::string path = ResultPathOf(task);
    return {{"Type", "Task"},
            {"Resource", resource},
            {"Parameters", std::move(parameters)},
            {"TimeoutSeconds", rules.timeout_s},
            {"ResultPath", path},
            {"Retry", RetryOf(rules.retry, {})},
            {"Catch", CatchAll(path, failed)}};
  }

  Json Status(const std::string& status, const std::string& time) const {
    Json parameters;
    names_.Put(parameters, "tenant_id", "{tenantId}");
    names_.Put(parameters, "migration_id", "{migrationId}");
    parameters["status"] = status;
    if (!time.empty()) parameters[time + ".$"] = "$$.State.EnteredTime";
    return {{"Type", "Task"}, {"Resource", "muster:status"}, {"Parameters", parameters}};
  }

  const Plan& plan_;
  const Profile& profile_;
  const Names names_;
};

}  // namespace

std::unique_ptr<ProfileStates> NewLocalStates(const Plan& plan, const Profile& profile) {
  return std::make_unique<LocalStates>(plan, profile);
}

}  // namespace muster::plan
