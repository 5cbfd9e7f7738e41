#pragma once

#include <memory>
#include <optional>
#include <string>

#include "core/json.h"
#include "muster/store.h"
#include "muster/task.h"

namespace muster::task {

// Keeps the status of migrations, for the resource `muster:status`:
//   {"tenant_id": "acme", "migration_id": "m-1", "status": "IN_PROGRESS",
//    "started_at": "2025-01-20T10:00:00Z", "completed_at": "…"}
// The status is IN_PROGRESS, COMPLETED, FAILED or CANCELLED. What is not given keeps its value, but
// a migration that is IN_PROGRESS (again) is not completed. The result is the whole status.
//
// It lies in the store, one record a migration: kind "migration_status", key TENANT/MIGRATION (each
// percent-encoded), the fields above as its body. The store is opened at the first call. A repeated
// call changes nothing.
//
// Failures: Status.Invalid, Status.Unavailable and so on, by what the store says. `env` must
// outlive it.
std::unique_ptr<states::TaskExecutor> MakeStatusExecutor(Env& env, std::string store_url);

// The status of a migration; none: it has none.
Result<std::optional<Json>> FindMigrationStatus(store::Store& store, const std::string& tenant,
                                                const std::string& migration);

}  // namespace muster::task
