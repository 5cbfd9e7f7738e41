#pragma once

#include <memory>

#include "muster/task.h"

namespace muster::task {

// Stages one object of a source as a file, for the resource `muster:copy`:
//   {"source": "csv:data",             any source of the pipeline; secrets by reference
//    "object": "Simpplr__Segment__c",  one of its collections
//    "staging": "staging/acme",        a folder of this migration alone
//    "format": "jsonl",                or "parquet"
//    "tenant": "acme", "migration": "m-1",
//    "max_unreadable": 0}              optional: so many rows may be unreadable; all by default
//
// The result is {"rows": N, "bytes": N, "file": PATH, "failed": N}: rows are in the file, failed
// ones (what the source could not give as a row) with their reasons in OBJECT.failed.jsonl beside
// it. The file appears whole or not at all, and counts from the moment its manifest is there, with
// rows, bytes, SHA-256, source and columns.
//
// More unreadable rows than `max_unreadable` are Copy.Unreadable: all rows are read, so that
// OBJECT.failed.jsonl has every one that is wrong, and the object is not staged.
//
// A repetition with the same token finds the manifest and copies nothing; another call replaces
// file and manifest. A folder that holds the object of another tenant or migration is refused.
//
// Failures: Copy.NotFound (the source has no such object), Copy.Conflict (another migration's
// folder), Copy.Full, Copy.Unavailable and so on, by what went wrong; States.Timeout.
std::unique_ptr<states::TaskExecutor> MakeCopyExecutor();

}  // namespace muster::task
