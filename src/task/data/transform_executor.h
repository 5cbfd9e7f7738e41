#pragma once

#include <memory>

#include "muster/states.h"

namespace muster::task {

// Transforms staged objects with an SQL script and loads the resulting rows, for the resource
// `muster:transform`:
//   {"script": "scripts/ps-segments.sql",   inside plan_folder, symbolic links resolved
//    "plan_folder": "examples/simpplr",
//    "staging": "staging/acme",             where muster:copy has staged the objects
//    "target": "sqlite:zeus.db",            or postgresql://…; secrets by reference
//    "arguments": {"TENANT_ID": "acme", "ENTITY_NAME": "ps-segments",
//                  "TARGET_SCHEMA": "ps", "TARGET_TABLE": "segments"},
//    "references": {"accounts.tenants": 100},   optional: the rank that loads a parent, for errors
//    "sha256": "9f86…",                         optional: of the script when the run began
//    "tenant": "acme", "migration": "m-1",      optional: identify the task across attempts
//    "run": {"id": "1f…", "attempt": 2}}        optional: the run, and its attempt
//
// The script is DuckDB SQL. Each staged object is a view of its name, and each argument a variable:
// getvariable('TENANT_ID'). Files outside the staging folder are inaccessible. The rows of its one
// SELECT are loaded into TARGET_SCHEMA.TARGET_TABLE (in SQLite, which has no schemas,
// TARGET_SCHEMA_TARGET_TABLE), matching columns by name; a table that it creates in the schema
// `target` is loaded into the table of that name in TARGET_SCHEMA. After the whole script has run,
// tables are loaded in its order, in one transaction; a row replaces the one with the same primary
// key, so that a repeat changes nothing. A row whose column `_rejected` is not null is not loaded,
// but written, with that reason, to rejected/ENTITY_NAME.jsonl in the staging folder.
//
// The result is {"read": N, "loaded": N, "rejected": N, "tables": {NAME: N, …}, "objects": {NAME:
// N, …}}: read, loaded and rejected count the SELECT's rows, tables the rows loaded into each
// table, objects the rows of the staged objects that the script names. muster:reconcile compares
// them.
//
// Failures, with file, line and statement: Transform.Invalid (the script, or rows that do not fit
// or break a constraint), Transform.NotFound (no script, no table), Transform.Incompatible (the
// script was edited), Transform.ForeignKey (with the parent table and the rank that loads it),
// Transform.LeaseLost (another try or attempt has taken over), Transform.Full (this machine's
// memory or disk), Transform.Unavailable and so on; States.Timeout. Nothing was loaded then, except
// perhaps with Transform.UnknownOutcome: a repeat finds out.
//
// A call loads once, however often it is tried: its result is committed with its rows, in the
// target's table muster_transform, and a try that finds it there loads nothing. Once another try or
// a later attempt has begun, a delayed session can no longer commit. See load_fence.h.
std::unique_ptr<states::TaskExecutor> MakeTransformExecutor();

}  // namespace muster::task
