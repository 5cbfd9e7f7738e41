#pragma once

#include <memory>

#include "muster/states.h"

namespace muster::task {

// Runs SQL, for the resource `muster:sql`:
//   {"Database": "postgresql://app:${env:PGPASSWORD}@db/sales"   or "sqlite:/srv/sales.db",
//    "Execute": "UPDATE orders SET state = $1 WHERE state = $2",   a write, or
//    "Query": "SELECT count(*) AS n FROM orders",                 a read
//    "Parameters": ["done", "open"]}                              $1, $2, … (SQLite: ?1, ?2, …)
// One statement per call. A SQLite file must exist, and is switched to write-ahead logging.
//
// Query returns {"Rows": [{COLUMN: VALUE, …}, …], "RowCount": N}, at most 10,000 rows; Execute
// {"RowCount": N}, the number of rows changed.
//
// Execute takes effect once per token: the same transaction writes the token into the database's
// table muster_task, and a repeat returns the first answer. A LoadFence extends that to all tries
// of a call: one returns what an earlier one has committed, and a session that a later try has
// overtaken cannot commit (Sql.LeaseLost). After a commit of unknown outcome the fence is taken
// again, so that what the server is still at has either happened or never will.
//
// Failures: Sql.Invalid (the statement), Sql.Conflict (a constraint), Sql.Unavailable and so on,
// with the database's message as the cause; States.DataLimitExceeded (too many rows). SQLite's
// statements cannot be stopped.
std::unique_ptr<states::TaskExecutor> MakeSqlExecutor();

}  // namespace muster::task
