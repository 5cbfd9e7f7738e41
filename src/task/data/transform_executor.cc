#include "task/data/transform_executor.h"

#include <filesystem>
#include <string>

#include "core/file.h"
#include "core/json_fields.h"
#include "core/log.h"
#include "core/secrets.h"
#include "core/sha256.h"
#include "task/background.h"
#include "task/data/reconcile.h"
#include "task/data/transform.h"
#include "task/data/transform_target.h"
#include "task/parameters.h"

namespace muster::task {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxScriptBytes = size_t{4} << 20;

// The script's text. Its canonical path must be inside the plan's folder.
Result<std::string> ReadScript(const std::string& folder, const std::string& script) {
  std::error_code failed;
  const fs::path root = fs::canonical(folder, failed);
  if (failed) {
    return Error{Code::kNotFound, "plan_folder '" + folder + "': " + failed.message()};
  }
  const fs::path path = fs::weakly_canonical(root / script, failed);
  const fs::path relative = path.lexically_relative(root);
  if (failed || relative.empty() || *relative.begin() == ".." || relative == ".") {
    return Error{Code::kInvalid, "the script '" + script + "' is outside the plan's folder",
                 "move it below " + folder};
  }
  if (!fs::exists(path, failed)) {
    return Error{Code::kNotFound, "script '" + script + "' not found in " + folder,
                 "create it, or correct its name in the plan"};
  }
  return ReadFile(path.string(), kMaxScriptBytes);
}

Result<LoadFence> FenceOf(const states::TaskCall& call, const TransformJob& job,
                          const Parameters& parameters, Env& env) {
  MUSTER_ASSIGN(const std::string tenant, parameters.Optional("tenant"));
  MUSTER_ASSIGN(const std::string migration, parameters.Optional("migration"));
  const Json run = parameters.Value("run");
  LoadFence fence{.task = CallOfToken(call.token), .run = {}, .call = CallOfToken(call.token)};
  if (!run.is_object()) {
    // Another execution may have had the same name: what that loaded does not count.
    fence.run = env.NewId();
    return fence;
  }
  // A JSON list keeps the parts apart.
  fence.task = ToJsonText(Json::array({tenant, migration, job.Argument("ENTITY_NAME")}));
  fence.run = TextIn(run, "id");
  fence.attempt = NumberIn(run, "attempt");
  return fence;
}

Result<TransformJob> ReadCall(const states::TaskCall& call, Env& env) {
  MUSTER_ASSIGN(const Parameters parameters,
                Parameters::Read(call, {"script", "plan_folder", "staging", "target", "arguments",
                                        "references", "sha256", "tenant", "migration", "run",
                                        "folder", "staging_run", "staging_unmarked"}));
  MUSTER_ASSIGN(Staging staging, StagingOf(parameters));
  MUSTER_ASSIGN(std::string target, parameters.PlaceInFolder("target"));
  MUSTER_ASSIGN(std::string script, parameters.Required("script"));
  MUSTER_ASSIGN(auto arguments, parameters.Texts("arguments"));
  TransformJob job{.script = std::move(script),
                   .text = {},
                   .staging = std::move(staging),
                   .target = std::move(target),
                   .arguments = std::move(arguments),
                   .fence = {}};
  if (job.Argument("TARGET_TABLE").empty()) {
    return parameters.Wrong("arguments: TARGET_TABLE is missing");
  }
  MUSTER_ASSIGN(job.fence, FenceOf(call, job, parameters, env));
  return job;
}

std::map<std::string, int64_t> ReferencesOf(const states::TaskCall& call) {
  std::map<std::string, int64_t> references;
  const Json given = call.input.value("references", Json::object());
  for (const auto& [table, rank] : given.items()) {
    if (rank.is_number_integer()) references[table] = rank;
  }
  return references;
}

Result<Json> Run(TransformJob& job, const states::TaskCall& call, Env& env,
                 const std::stop_token& stop) {
  MUSTER_ASSIGN(job.text, ReadScript(call.input.value("plan_folder", "."), job.script));
  const std::string pinned = call.input.value("sha256", std::string());
  if (!pinned.empty() && pinned != Sha256Hex(job.text)) {
    return Error{Code::kIncompatible, job.script + " was edited after the run began",
                 "undo the edit, or resume the run with --accept-changes"};
  }
  return RunTransform(job, env, stop);
}

class TransformExecutor final : public BlockingExecutor {
 public:
  TransformExecutor() : BlockingExecutor("Transform") {}

  bool Runs(std::string_view resource) const override { return resource == "muster:transform"; }

 protected:
  Result<Work> Prepare(const states::TaskCall& call, states::TaskContext& context) override {
    MUSTER_ASSIGN(TransformJob job, ReadCall(call, context.env()));
    job.on_wait = [&call, &context](const std::string& what) {
      context.WaitsFor(what);
      if (what.empty()) return;
      Log(Level::kWarning, "a transform waits", {{"task", call.state}, {"for", what}});
    };
    job.progress = [&context](int64_t rows) { context.Progress(rows); };
    return Work([job = std::move(job), &call,
                 &context](const std::stop_token& stop) mutable -> Result<states::TaskOutcome> {
      MUSTER_ASSIGN(Json result, Run(job, call, context.env(), stop));
      return states::TaskOutcome(states::TaskSuccess{std::move(result)});
    });
  }

  // Names the rank that loads the missing parent of a foreign key.
  states::TaskFailure FailureOf(const states::TaskCall& call, const Error& error) const override {
    if (error.message.find(kForeignKeyViolated) == std::string::npos) {
      return BlockingExecutor::FailureOf(call, error);
    }
    const Error named{error.code,
                      error.message + LoaderOf(ParentIn(error.message), ReferencesOf(call)),
                      error.hint};
    return {"Transform.ForeignKey", named.ToString()};
  }
};

}  // namespace

std::unique_ptr<states::TaskExecutor> MakeTransformExecutor() {
  return std::make_unique<TransformExecutor>();
}

}  // namespace muster::task
