#pragma once

#include <memory>

#include "core/url.h"
#include "muster/env.h"
#include "muster/pipeline.h"
#include "muster/result.h"

namespace muster::pipeline {

// postgresql://USER@HOST:PORT/DATABASE?PARAMETERS#TABLE: one table or view. Without #TABLE: all
// tables of the schema. Parameters besides libpq's: `schema`, instead of the first in the search
// path; `key=COLUMN,COLUMN`, for a view, or instead of a table's own key; `query=SQL`, with `key`,
// instead of a table, where # names the collection; `partitions=N` per table, instead of one per
// 256 MiB.
//
// Also accepts a sink's URL: the sink's own parameters are ignored.
//
// All partitions that a process reads are from one snapshot. Positions are keys, "after this row",
// and valid as long as rows keep their keys; those of a table without a key are page locations, and
// valid as long as the table does not change. `env` must outlive the source.
Result<std::unique_ptr<Source>> OpenPostgresSource(const Url& url, Env& env);

}  // namespace muster::pipeline
