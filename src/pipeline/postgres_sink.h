#pragma once

#include <memory>

#include "base/url.h"
#include "muster/env.h"
#include "muster/pipeline.h"
#include "muster/result.h"

namespace muster {

// postgresql://USER@HOST:PORT/DATABASE?PARAMETERS#TABLE. Without #TABLE every collection goes into
// the table of its name. Parameters, beside libpq's: `schema`, where a table without one is and
// where muster_progress is; `documents=true`: tables are created for whole documents.
//
// Exactly once, and fenced: see PostgresWriter. `env` must outlive the sink.
Result<std::unique_ptr<Sink>> OpenPostgresSink(const Url& url, Env& env);

}  // namespace muster
