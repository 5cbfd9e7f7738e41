#include "task/call/status_executor.h"

#include "core/enum_names.h"
#include "core/record_fields.h"
#include "core/secrets.h"
#include "core/url.h"
#include "muster/store.h"
#include "task/parameters.h"

namespace muster::task {
namespace {

constexpr const char* kKind = "migration_status";

std::string KeyOf(const std::string& tenant, const std::string& migration) {
  return PercentEncode(tenant) + "/" + PercentEncode(migration);
}

struct MigrationStatus {
  std::string tenant = {};
  std::string migration = {};
  RunStatus status = RunStatus::kInProgress;
  std::string started_at = {};
  std::string completed_at = {};

  bool operator==(const MigrationStatus&) const = default;
};

constexpr EnumNames<RunStatus, 4> kStatusNames{{{
    {RunStatus::kInProgress, NameOf(RunStatus::kInProgress)},
    {RunStatus::kCompleted, NameOf(RunStatus::kCompleted)},
    {RunStatus::kFailed, NameOf(RunStatus::kFailed)},
    {RunStatus::kCancelled, NameOf(RunStatus::kCancelled)},
}}};

constexpr RecordTable<MigrationStatus, 5> kTable{
    RecordFormat{kKind, 1},
    {{Required<MigrationStatus, &MigrationStatus::tenant>("tenant_id"),
      Required<MigrationStatus, &MigrationStatus::migration>("migration_id"),
      Named<MigrationStatus, &MigrationStatus::status, kStatusNames>("status"),
      Field<MigrationStatus, &MigrationStatus::started_at>("started_at"),
      Field<MigrationStatus, &MigrationStatus::completed_at>("completed_at")}}};

Result<MigrationStatus> ReadStatus(const store::Record& record) {
  return kTable.Parse(record.body, "the status of migration '" + record.key + "'");
}

// What a call makes of the status before it. A resumed migration keeps its start.
MigrationStatus Over(const MigrationStatus& before, MigrationStatus given) {
  if (!before.started_at.empty()) given.started_at = before.started_at;
  if (given.status == RunStatus::kInProgress) {
    given.completed_at.clear();
  } else if (given.completed_at.empty()) {
    given.completed_at = before.completed_at;
  }
  return given;
}

Result<MigrationStatus> ReadCall(const states::TaskCall& call) {
  MUSTER_ASSIGN(const Parameters parameters,
                Parameters::Read(
                    call, {"tenant_id", "migration_id", "status", "started_at", "completed_at"}));
  MigrationStatus status;
  MUSTER_ASSIGN(status.tenant, parameters.Required("tenant_id"));
  MUSTER_ASSIGN(status.migration, parameters.Required("migration_id"));
  MUSTER_ASSIGN(const std::string name, parameters.Required("status"));
  MUSTER_ASSIGN(status.started_at, parameters.Optional("started_at"));
  MUSTER_ASSIGN(status.completed_at, parameters.Optional("completed_at"));
  const auto known = kStatusNames.Find(name);
  if (!known) {
    return parameters.Wrong("status must be IN_PROGRESS, COMPLETED, FAILED or CANCELLED");
  }
  status.status = *known;
  return status;
}

Result<MigrationStatus> Keep(store::Store& store, const MigrationStatus& given) {
  const std::string key = KeyOf(given.tenant, given.migration);
  MigrationStatus after;
  const auto update =
      [&](std::optional<store::Record> found) -> Result<std::optional<store::Change>> {
    MigrationStatus before;
    if (found) {
      MUSTER_ASSIGN(before, ReadStatus(*found));
    }
    after = Over(before, given);
    if (found && after == before) return std::nullopt;
    store::Record record =
        std::move(found).value_or(store::Record{.kind = kKind, .queue = "status", .key = key});
    record.body = ToJsonText(kTable.ToJson(after));
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
    const auto kept = KeepIn(*status);
    if (kept) return states::TaskSuccess{kTable.Members(*kept)};
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
  Result<MigrationStatus> KeepIn(const MigrationStatus& status) {
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
  MUSTER_ASSIGN(const MigrationStatus status, ReadStatus(*found));
  return std::optional<Json>(kTable.Members(status));
}

}  // namespace muster::task
