#pragma once

#include <memory>
#include <optional>
#include <string>

#include "core/json.h"
#include "muster/states.h"
#include "muster/store.h"
#include "task/store_handle.h"

namespace muster::task {

// Records the status of migrations, for the resource `muster:status`:
//   {"tenant_id": "acme", "migration_id": "m-1", "status": "IN_PROGRESS",
//    "started_at": "2025-01-20T10:00:00Z", "completed_at": "…"}
// The status is IN_PROGRESS, COMPLETED, FAILED or CANCELLED. Omitted fields keep their values,
// except that IN_PROGRESS clears completed_at. The result is the whole status.
//
// Stored as one record per migration: kind "migration_status", key TENANT/MIGRATION (each
// percent-encoded), the fields above and the version of the format as its body. The store is opened
// at the first call. A repeated call changes nothing.
//
// Failures: Status.Invalid, Status.Unavailable and so on, by the store's error. `env` must outlive
// it.
std::unique_ptr<states::TaskExecutor> MakeStatusExecutor(Env& env, StoreHandle store);

// The status of a migration, if any.
Result<std::optional<Json>> FindMigrationStatus(store::Store& store, const std::string& tenant,
                                                const std::string& migration);

}  // namespace muster::task
