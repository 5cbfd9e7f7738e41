#include "task/call/status_executor.h"

#include <array>

#include "core/run_status.h"
#include "core/secrets.h"
#include "core/url.h"
#include "store/store.h"
#include "task/parameters.h"

namespace muster::task {
namespace {

constexpr const char* kKind = "migration_status";

std::string KeyOf(const std::string& tenant, const std::string& migration) {
  return PercentEncode(tenant) + "/" + PercentEncode(migration);
}

struct StatusCall {
  std::string tenant;
  std::string migration;
  RunStatus status = RunStatus::kInProgress;
  std::string started_at;    // ignored if already set: a resumed migration keeps its start
  std::string completed_at;  // empty: unchanged

  Json Over(Json before) const {
    Json after{{"tenant_id", tenant}, {"migration_id", migration}, {"status", NameOf(status)}};
    const auto keep = [&](const char* field, const std::string& given) {
      if (!given.empty()) after[field] = given;
      if (given.empty() && before.contains(field)) after[field] = before[field];
    };
    keep("started_at", before.contains("started_at") ? std::string() : started_at);
    if (status != RunStatus::kInProgress) keep("completed_at", completed_at);
    return after;
  }
};

Result<StatusCall> ReadCall(const states::TaskCall& call) {
  MUSTER_ASSIGN(const Parameters parameters,
                Parameters::Read(
                    call, {"tenant_id", "migration_id", "status", "started_at", "completed_at"}));
  StatusCall status;
  MUSTER_ASSIGN(status.tenant, parameters.Required("tenant_id"));
  MUSTER_ASSIGN(status.migration, parameters.Required("migration_id"));
  MUSTER_ASSIGN(const std::string name, parameters.Required("status"));
  MUSTER_ASSIGN(status.started_at, parameters.Optional("started_at"));
  MUSTER_ASSIGN(status.completed_at, parameters.Optional("completed_at"));
  const auto known = kRunStatusNames.Find(name);
  if (!known || *known == RunStatus::kUnreadable) {
    return parameters.Wrong("status must be IN_PROGRESS, COMPLETED, FAILED or CANCELLED");
  }
  status.status = *known;
  return status;
}

Result<Json> Keep(store::Store& store, const StatusCall& call) {
  const std::string key = KeyOf(call.tenant, call.migration);
  Json after;
  const auto update =
      [&](std::optional<store::Record> found) -> Result<std::optional<store::Change>> {
    store::Record record =
        std::move(found).value_or(store::Record{.kind = kKind, .queue = "status", .key = key});
    MUSTER_ASSIGN(const Json before, ParseJson(record.body, "the status in the store"));
    after = call.Over(before);
    if (record.version > 0 && after == before) return std::nullopt;
    record.body = ToJsonText(after);
    return store::Change::Put(std::move(record), store::Due::Never());
  };
  MUSTER_TRY(store::Update(store, kKind, key, update));
  return after;
}

class StatusExecutor : public states::TaskExecutor {
 public:
  StatusExecutor(Env& env, StoreHandle store) : env_(env), store_(std::move(store)) {}

  bool Runs(std::string_view resource) const override { return resource == "muster:status"; }

  states::TaskOutcome Start(const states::TaskCall& call,
                            states::TaskContext& /*context*/) override {
    const auto status = ReadCall(call);
    if (!status) return states::TaskFailure{"States.Runtime", status.error().ToString()};
    auto kept = KeepIn(*status);
    if (kept) return states::TaskSuccess{*std::move(kept)};
    return states::TaskFailure{FailureName("Status", kept.error().code),
                               Redact(kept.error().ToString())};
  }

  states::TaskOutcome Poll(const states::TaskCall& call, const Json& /*resume*/,
                           states::TaskContext& context) override {
    return Start(call, context);
  }

  void Cancel(const states::TaskCall& /*call*/, const Json& /*resume*/,
              states::TaskContext& /*context*/) override {}

 private:
  Result<Json> KeepIn(const StatusCall& status) {
    MUSTER_ASSIGN(store::Store* const store, store_.Open(env_));
    return Keep(*store, status);
  }

  Env& env_;
  const StoreHandle store_;
};

}  // namespace

std::unique_ptr<states::TaskExecutor> MakeStatusExecutor(Env& env, StoreHandle store) {
  return std::make_unique<StatusExecutor>(env, std::move(store));
}

Result<std::optional<Json>> FindMigrationStatus(store::Store& store, const std::string& tenant,
                                                const std::string& migration) {
  MUSTER_ASSIGN(const auto found, store.Get(kKind, KeyOf(tenant, migration)));
  if (!found) return std::optional<Json>();
  MUSTER_ASSIGN(Json status, ParseJson(found->body, "the status in the store"));
  return std::optional<Json>(std::move(status));
}

}  // namespace muster::task
