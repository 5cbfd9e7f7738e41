#include "task/data/reconcile_executor.h"

#include "core/log.h"
#include "core/secrets.h"
#include "task/background.h"
#include "task/data/reconcile.h"
#include "task/data/transform_target.h"
#include "task/parameters.h"

namespace muster::task {
namespace {

constexpr size_t kMaxListed = 20;
constexpr const char* kMismatchHint =
    "check which rows the script omits or duplicates; if it groups rows on purpose, set 'counts' "
    "in the plan";

Result<ExpectedLoad> ReadScript(const std::string& name, const Json& json,
                                const Parameters& parameters) {
  ExpectedLoad load{.script = name, .schema = {}, .table = {}};
  try {
    load.schema = json.at("schema");
    load.table = json.at("table");
    const Json counts = json.value("counts", Json::object());
    for (const auto& [table, object] : counts.items()) load.counts[table] = object;
    const Json references = json.value("references", Json::object());
    for (const auto& [table, rank] : references.items()) load.references[table] = rank;
  } catch (const Json::Exception&) {
    return parameters.Wrong("scripts: " + name + " needs schema, table, counts and references");
  }
  return load;
}

struct ReconcileCall {
  ReconcileJob job;
  std::string rank;
};

Result<ReconcileCall> ReadCall(const states::TaskCall& call) {
  MUSTER_ASSIGN(const Parameters parameters,
                Parameters::Read(call, {"rank", "staging", "target", "extracted", "transformed",
                                        "scripts", "folder", "staging_run", "staging_unmarked"}));
  MUSTER_ASSIGN(Staging staging, StagingOf(parameters));
  ReconcileCall read{.job = {.staging = std::move(staging),
                             .target = {},
                             .extracted = parameters.Value("extracted"),
                             .transformed = parameters.Value("transformed"),
                             .scripts = {}},
                     .rank = ToJsonText(parameters.Value("rank"))};
  MUSTER_ASSIGN(read.job.target, parameters.PlaceInFolder("target"));
  const Json scripts = parameters.Value("scripts");
  // A rank may only extract.
  if (read.job.transformed.is_null()) read.job.transformed = Json::object();
  if (!scripts.is_null() && (!scripts.is_object() || !read.job.transformed.is_object()))
    return parameters.Wrong("scripts and transformed must be objects");
  for (const auto& [name, json] : scripts.items()) {
    MUSTER_ASSIGN(ExpectedLoad load, ReadScript(name, json, parameters));
    read.job.scripts.push_back(std::move(load));
  }
  return read;
}

std::string ListOf(const std::vector<std::string>& all) {
  std::string text;
  for (size_t i = 0; i < std::min(all.size(), kMaxListed); ++i)
    text += (i == 0 ? "" : "; ") + all[i];
  if (all.size() > kMaxListed) text += "; and " + std::to_string(all.size() - kMaxListed) + " more";
  return text;
}

states::TaskOutcome OutcomeOf(const Reconciled& found, const std::string& rank) {
  if (found.orphans.empty() && found.mismatches.empty()) return states::TaskSuccess{found.counts};
  std::string text = "rank " + rank + ": ";
  std::string hint;
  if (!found.orphans.empty()) {
    text += std::string(kForeignKeyViolated) + ListOf(found.orphans);
    hint = kForeignKeyHint;
  }
  if (!found.mismatches.empty()) {
    text += (found.orphans.empty() ? "" : "; ") + ("rows are missing: " + ListOf(found.mismatches));
    if (hint.empty()) hint = kMismatchHint;
  }
  const Error error{Code::kConflict, Redact(text), hint};
  return states::TaskFailure{found.orphans.empty() ? "Reconcile.Mismatch" : "Reconcile.ForeignKey",
                             error.ToString()};
}

class ReconcileExecutor final : public BlockingExecutor {
 public:
  ReconcileExecutor() : BlockingExecutor("Reconcile") {}

  bool Runs(std::string_view resource) const override { return resource == "muster:reconcile"; }

 protected:
  Result<Work> Prepare(const states::TaskCall& call, states::TaskContext& context) override {
    MUSTER_ASSIGN(ReconcileCall read, ReadCall(call));
    read.job.on_wait = [&call, &context](const std::string& what) {
      context.WaitsFor(what);
      if (what.empty()) return;
      Log(Level::kWarning, "a reconciliation waits", {{"task", call.state}, {"for", what}});
    };
    return Work([read = std::move(read),
                 &context](const std::stop_token& stop) -> Result<states::TaskOutcome> {
      MUSTER_ASSIGN(const Reconciled found, Reconcile(read.job, context.env(), stop));
      return OutcomeOf(found, read.rank);
    });
  }
};

}  // namespace

std::unique_ptr<states::TaskExecutor> MakeReconcileExecutor() {
  return std::make_unique<ReconcileExecutor>();
}

}  // namespace muster::task
