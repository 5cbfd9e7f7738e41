#pragma once

#include <span>
#include <string>
#include <vector>

#include "replica/read_model.h"
#include "replica/sqlite_model_connection.h"

namespace muster::replica {

// Parked streams and events in SQLite; see ReadModel.

// Within a transaction, one kind of ReadModelProgress each. kLeaseLost: something that must be
// parked is not.
Status CommitParked(SqliteModelConnection& connection, const Instance& instance,
                    const ReadModelProgress& progress);
Status CommitFailed(SqliteModelConnection& connection, const Instance& instance,
                    const ReadModelProgress& progress);
Status CommitReplayed(SqliteModelConnection& connection, const Instance& instance,
                      const ReadModelProgress& progress);

// Replaces the error of a stream whose failed event was skipped while others wait behind it.
Status ForgetSkipped(SqliteModelConnection& connection, const Instance& instance,
                     const ParkedEvent& event);

// Forgets what is parked in a slot.
Status Unpark(SqliteModelConnection& connection, const Instance& instance, int slot);

Result<std::vector<ParkedStream>> ReadParked(SqliteModelConnection& connection,
                                             const Instance& instance, std::span<const int> slots);
Result<int64_t> RequestReplays(SqliteModelConnection& connection, const Instance& instance,
                               const std::string& stream);

}  // namespace muster::replica
