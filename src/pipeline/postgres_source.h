#pragma once

#include <memory>

#include "base/url.h"
#include "muster/env.h"
#include "muster/pipeline.h"
#include "muster/result.h"

namespace muster {

// postgresql://USER@HOST:PORT/DATABASE?PARAMETERS#TABLE: one table or view. Without #TABLE: all
// tables of the schema. Parameters, beside libpq's: `schema`, in place of the first one of the
// search path; `key=COLUMN,COLUMN`, for a view, or in place of a table's own key; `query=SQL`, with
// `key`, in place of a table, where # names the collection; `partitions=N` per table, in place of
// one for every 256 MiB.
//
// A sink's URL is one of a source, too: its own parameters are passed over.
//
// All partitions that a process reads are of one moment. Positions are keys, "after this row", and
// hold as long as rows keep their keys; those of a table without a key are places in its pages, and
// hold as long as nothing changes it. `env` must outlive the source.
Result<std::unique_ptr<Source>> OpenPostgresSource(const Url& url, Env& env);

}  // namespace muster
