#pragma once

#include <memory>

#include "core/url.h"
#include "muster/env.h"
#include "muster/pipeline.h"
#include "muster/result.h"

namespace muster::pipeline {

// postgresql://USER@HOST:PORT/DATABASE?PARAMETERS#TABLE. Without #TABLE, each collection goes into
// the table of its name. Parameters besides libpq's: `schema`, for tables without one and for
// muster_progress; `documents=true`: create tables of whole documents; `misfits=convert`: round
// numbers as their columns do, instead of refusing them.
//
// Exactly once, and fenced: see PostgresWriter. `env` must outlive the sink.
Result<std::unique_ptr<Sink>> OpenPostgresSink(const Url& url, Env& env);

}  // namespace muster::pipeline
