#pragma once

#include <memory>
#include <string>

#include "muster/env.h"
#include "muster/states.h"
#include "muster/work.h"
#include "task/store_handle.h"

namespace muster::task {

// How the items of a copy are leased and checkpointed.
work::WorkTerms CopyTerms();

// Stages one object of a source as a file, for the resource `muster:copy`:
//   {"source": "csv:data",             any source of the pipeline; secrets by reference
//    "object": "Simpplr__Segment__c",  one of its collections
//    "staging": "staging/acme",        a folder of this migration alone
//    "format": "jsonl",                or "parquet"
//    "tenant": "acme", "migration": "m-1",
//    "max_unreadable": 0}              optional: how many rows may be unreadable; all by default
//
// The result is {"rows": N, "bytes": N, "file": PATH, "failed": N}: rows are in the file, failed
// ones, which could not be read, with their reasons in unreadable/OBJECT.jsonl beside it. The file
// appears complete or not at all, and counts as soon as its manifest exists, with rows, bytes,
// SHA-256, source and columns.
//
// More unreadable rows than `max_unreadable` are Copy.Unreadable: all rows are read, so that
// unreadable/OBJECT.jsonl lists every unreadable one, and the object is not staged.
//
// A repetition with the same token finds the manifest and copies nothing; another call replaces
// file and manifest. A folder that holds the object of another tenant or migration is refused.
//
// The copy is a run of leased work items in the store, driven by this process and named after the
// call: after a crash, a time-out, a stop or a transient failure the next call of the same task
// goes on where the copy was, and processes that make the same call share it. Pieces lie in
// .OBJECT.copy of the folder; those of a folder in S3 in the temporary folder of this machine.
//
// Failures: Copy.NotFound (the source has no such object), Copy.Invalid (another migration's
// folder), Copy.Conflict (documents changed while they were copied), Copy.Full, Copy.Unavailable
// and so on, by what went wrong; States.Timeout.
//
// With the store "memory:" only this executor can resume a copy.
std::unique_ptr<states::TaskExecutor> MakeCopyExecutor(Env& env = RealEnv(),
                                                       StoreHandle store = StoreHandle("memory:"),
                                                       const work::WorkTerms& terms = CopyTerms());

}  // namespace muster::task
