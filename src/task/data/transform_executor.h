#pragma once

#include <memory>

#include "muster/task.h"

namespace muster::task {

// Transforms staged objects by an SQL script and loads what comes out, for the resource
// `muster:transform`:
//   {"script": "scripts/ps-segments.sql",   inside plan_folder, whatever links and dots say
//    "plan_folder": "examples/simpplr",
//    "staging": "staging/acme",             where muster:copy has put the objects
//    "target": "sqlite:zeus.db",            or postgresql://…; secrets by reference
//    "arguments": {"TENANT_ID": "acme", "ENTITY_NAME": "ps-segments",
//                  "TARGET_SCHEMA": "ps", "TARGET_TABLE": "segments"},
//    "references": {"accounts.tenants": 100},   optional: the rank that loads a parent, for errors
//    "sha256": "9f86…",                         optional: of the script, as the run knows it
//    "tenant": "acme", "migration": "m-1",      optional, with the run's own id: whose task it is
//    "run": {"id": "1f…", "attempt": 2}}        in all attempts, and in which
//
// The script is DuckDB's SQL. Each staged object is a view of its name, and each argument a
// variable: getvariable('TENANT_ID'). Files outside the staging folder are out of reach. What its
// one SELECT gives goes into TARGET_SCHEMA.TARGET_TABLE (SQLite has no schemas:
// TARGET_SCHEMA_TARGET_TABLE), columns by their names; a table that it makes in the schema `target`
// goes into the table of that name in TARGET_SCHEMA. Tables are loaded in the order in which the
// script gives them, after all of it was run, in one transaction; a row replaces the one with the
// same primary key, so that a repetition changes nothing. A row whose column `_rejected` is not
// null is not loaded: it is written, with that as the reason, into rejected/ENTITY_NAME.jsonl of
// the staging folder.
//
// The result is {"read": N, "loaded": N, "rejected": N, "tables": {NAME: N, …}, "objects": {NAME:
// N, …}}: read, loaded and rejected are about the SELECT, tables has the rows of every table that
// the database has taken, objects the rows of the staged objects that the script names. Whether
// that adds up is for muster:reconcile to say.
//
// Failures, with file, line and statement: Transform.Invalid (the script, or rows that don't fit),
// Transform.NotFound (no script, no table), Transform.Incompatible (the script was edited),
// Transform.ForeignKey (with the parent table and the
// rank that loads it),
// Transform.LeaseLost (another try or attempt has taken over), Transform.Conflict,
// Transform.Unavailable and so on; States.Timeout. Nothing was loaded then,
// Transform.UnknownOutcome aside: there a repetition finds out.
//
// A call loads once, however often it is tried: its result is committed with its rows, in the
// target's table muster_transform, and a try that finds it there loads nothing. A session that was
// held up while another try or a later attempt began cannot commit any more. See load_fence.h.
std::unique_ptr<states::TaskExecutor> MakeTransformExecutor();

}  // namespace muster::task
