#pragma once

#include <memory>

#include "muster/task.h"

namespace muster::task {

// Runs SQL, for the resource `muster:sql`:
//   {"Database": "postgresql://app:${env:PGPASSWORD}@db/sales"   or "sqlite:/srv/sales.db",
//    "Execute": "UPDATE orders SET state = $1 WHERE state = $2",   something that changes, or
//    "Query": "SELECT count(*) AS n FROM orders",                 something that only reads
//    "Parameters": ["done", "open"]}                              $1, $2, … (SQLite: ?1, ?2, …)
// One statement a call. A SQLite file must exist, and is switched to its write-ahead log.
//
// The result of Query is {"Rows": [{COLUMN: VALUE, …}, …], "RowCount": N}, at most 10,000 rows; of
// Execute {"RowCount": N}, the rows that it has changed.
//
// Execute happens once for a token: in the same transaction the token is written into the table
// muster_task of that database, and a repetition gives the first answer. When nobody knows whether
// the commit went through, that table is asked.
//
// Failures: Sql.Invalid, Sql.Unavailable, Sql.Conflict and so on, by what went wrong, with the
// database's words as the cause; States.DataLimitExceeded. SQLite's statements cannot be stopped.
std::unique_ptr<states::TaskExecutor> MakeSqlExecutor();

}  // namespace muster::task
