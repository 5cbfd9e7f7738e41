#include <algorithm>
#include <filesystem>

#include "plan/compile/machine_data.h"
#include "plan/compile/profile_states.h"
#include "plan/model/name_template.h"

namespace muster::plan {
namespace {

constexpr int64_t kReconcileSeconds = 4 * 3'600;

// Tasks that this program runs itself.
class LocalStates final : public ProfileStates {
 public:
  LocalStates(const Plan& plan, const Profile& profile, RunIdentity run)
      : plan_(plan),
        profile_(profile),
        run_(std::move(run)),
        names_(plan),
        loaders_(plan.Loaders()) {}

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

  std::string FirstState(const Rank& rank, Phase phase, const std::string& task) const override {
    return LastState(rank, phase, task);
  }

  void AddExtract(Chain& chain, const Rank& rank, const ExtractTask& task,
                  const std::string& failed) const override {
    Json parameters;
    names_.Put(parameters, "source", profile_.source);
    parameters["object"] = task.name;
    names_.Put(parameters, "staging", profile_.staging);
    parameters["format"] = profile_.format == StagingFormat::kParquet ? "parquet" : "jsonl";
    names_.Put(parameters, "tenant", "{tenantId}");
    PutMigration(parameters, "migration");
    parameters["max_unreadable"] = task.max_unreadable;
    PutPlaces(parameters);
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
    if (!task.sha256.empty()) parameters["sha256"] = task.sha256;
    names_.Put(parameters, "tenant", "{tenantId}");
    PutMigration(parameters, "migration");
    if (!run_.id.empty()) parameters["run"] = {{"id", run_.id}, {"attempt", run_.attempt}};
    names_.Put(parameters, "staging", profile_.staging);
    names_.Put(parameters, "target", profile_.target);
    PutPlaces(parameters);
    parameters["arguments"] = arguments;
    parameters["references"] = LoadersFor(rank, task);
    chain.Add(LastState(rank, Phase::kTransform, task.name),
              TaskState("muster:transform", parameters, task.name, task.rules, failed));
  }

  std::string ReconcileName(const Rank& rank) const override {
    return "Reconcile-Rank" + std::to_string(rank.number);
  }

  std::optional<Json> Reconcile(const Rank& rank) const override {
    Json parameters{{"rank", rank.number}};
    names_.Put(parameters, "staging", profile_.staging);
    names_.Put(parameters, "target", profile_.target);
    PutPlaces(parameters);
    if (!rank.extract.empty()) parameters["extracted.$"] = "$.extract.results";
    if (!rank.transform.empty()) parameters["transformed.$"] = "$.transform.results";
    Json scripts = Json::object();
    for (const Reference& name : rank.transform) {
      const TransformTask& script = plan_.scripts.at(name.name);
      scripts[script.name] = {{"schema", script.schema},
                              {"table", script.table},
                              {"counts", plan_.CountedBy(script, rank)},
                              {"references", LoadersFor(rank, script)}};
    }
    parameters["scripts"] = scripts;
    // A retry would not bring missing rows back.
    Json retry = Json::array(
        {{{"ErrorEquals", {"Reconcile.Mismatch", "Reconcile.ForeignKey"}}, {"MaxAttempts", 0}}});
    retry.push_back(RetryService().front());
    return Json{
        {"Type", "Task"},
        {"Comment", "extracted = staged = loaded + rejected, and no row without its parent"},
        {"Resource", "muster:reconcile"},
        {"Parameters", parameters},
        {"TimeoutSeconds", kReconcileSeconds},
        {"ResultSelector",
         {{"failed", Json::array()}, {std::string(kReconcileResult) + ".$", "$"}}},
        {"ResultPath", kReconcilePath},
        {"Retry", retry}};
  }

  Json NotifyUnreconciled(const Rank& rank) const override {
    const std::string number = std::to_string(rank.number);
    return Tell("The rows of rank " + number + " do not add up",
                {{"rank", rank.number},
                 {"error.$", kUnreconciledPath},
                 {"message", "Reconciliation failed in rank " + number}},
                number + "/reconcile", {{"failed", Json::array({{{"task", ReconcileName(rank)}}})}},
                kReconcilePath);
  }

  Json Notify(const Rank& rank, Phase phase, const std::string& task) const override {
    const std::string what = phase == Phase::kExtract ? "Extraction" : "Transformation";
    return Tell(what + " of " + task + " failed", FailureMessage(rank, phase, task, what),
                std::to_string(rank.number) + "/" + task, {{"task", task}}, "$.failed");
  }

  Json Initialize() const override { return Status(RunStatus::kInProgress, "started_at"); }
  Json Update(RunStatus status) const override {
    return Status(status, status == RunStatus::kCompleted ? "completed_at" : "");
  }

  std::optional<Json> StopExtract() const override { return std::nullopt; }

  Json StartRank(const Rank& /*rank*/, const Json& /*input*/) const override { return {}; }

 private:
  // If another tenant or environment has a migration of that name, the run's own name is longer.
  void PutMigration(Json& parameters, const std::string& key) const {
    if (run_.name.empty()) {
      names_.Put(parameters, key, "{migrationId}");
    } else {
      parameters[key] = run_.name;
    }
  }

  // The base of relative paths, and the run whose staged objects count.
  void PutPlaces(Json& parameters) const {
    if (!run_.folder.empty()) parameters["folder"] = run_.folder;
    if (!run_.id.empty()) parameters["staging_run"] = run_.id;
    if (run_.unmarked_staging) parameters["staging_unmarked"] = true;
  }

  // The ranks that load the tables referenced by a script's foreign keys, including the script's
  // own.
  Json LoadersFor(const Rank& rank, const TransformTask& script) const {
    Json loaders{{script.Target(), rank.number}};
    for (const Reference& table : script.refers.value_or(std::vector<Reference>()))
      loaders[table.name] = loaders_.at(table.name);
    return loaders;
  }

  // A state that notifies all targets, if any, and leaves `marker` at a path.
  Json Tell(const std::string& what, Json message, const std::string& key, const Json& marker,
            const std::string& path) const {
    if (profile_.notify.empty())
      return {{"Type", "Pass"}, {"Result", marker}, {"ResultPath", path}};
    Json parameters{{"targets", profile_.notify},
                    {"subject", plan_.name + ": " + what},
                    {"message", std::move(message)}};
    if (std::find(profile_.notify.begin(), profile_.notify.end(), "sns") != profile_.notify.end())
      names_.Put(parameters, "topic", plan_.names.topic);
    if (!run_.folder.empty()) parameters["folder"] = run_.folder;
    // Each attempt has its own name, so its failures are reported again.
    PutMigration(parameters, "migration");
    parameters["dedupe.$"] = "States.Format('{}/" + key + "', $$.Execution.Name)";
    return {{"Type", "Task"},           {"Resource", "muster:notify"}, {"Parameters", parameters},
            {"ResultSelector", marker}, {"ResultPath", path},          {"Retry", RetryService()}};
  }

  static Json TaskState(const std::string& resource, Json parameters, const std::string& task,
                        const PhaseRules& rules, const std::string& failed) {
    const std::string path = ResultPathOf(task);
    Json retry = RetryOf(rules.retry, {});
    retry.insert(retry.begin(),
                 DontRetry(resource == "muster:copy" ? "Copy" : "Transform",
                           {"Invalid", "NotFound", "ForeignKey", "Incompatible", "Unreadable"}));
    return {{"Type", "Task"},
            {"Resource", resource},
            {"Parameters", std::move(parameters)},
            {"TimeoutSeconds", rules.timeout_s},
            {"ResultPath", path},
            {"Retry", retry},
            {"Catch", CatchAll(path, failed)}};
  }

  // Errors that no retry can fix.
  static Json DontRetry(const std::string& family, std::initializer_list<const char*> names) {
    Json errors = Json::array();
    for (const char* name : names) errors.push_back(family + "." + name);
    return {{"ErrorEquals", errors}, {"MaxAttempts", 0}};
  }

  Json Status(RunStatus status, const std::string& time) const {
    Json parameters;
    names_.Put(parameters, "tenant_id", "{tenantId}");
    PutMigration(parameters, "migration_id");
    parameters["status"] = NameOf(status);
    if (!time.empty()) parameters[time + ".$"] = "$$.State.EnteredTime";
    Json retry = Json::array({DontRetry("Status", {"Invalid", "Corrupt", "Incompatible"})});
    retry.push_back(RetryService().front());
    return {{"Type", "Task"},
            {"Resource", "muster:status"},
            {"Parameters", parameters},
            {"Retry", retry}};
  }

  const Plan& plan_;
  const Profile& profile_;
  const RunIdentity run_;
  const Names names_;
  const std::map<std::string, int64_t> loaders_;
};

}  // namespace

std::unique_ptr<ProfileStates> NewLocalStates(const Plan& plan, const Profile& profile,
                                              const RunIdentity& run) {
  return std::make_unique<LocalStates>(plan, profile, run);
}

}  // namespace muster::plan
