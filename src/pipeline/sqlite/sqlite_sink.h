#pragma once

#include <memory>

#include "core/url.h"
#include "muster/env.h"
#include "muster/pipeline.h"
#include "muster/result.h"

namespace muster::pipeline {

// sqlite:FILE#TABLE. The file is created if needed. Without #TABLE, each collection goes into the
// table of its name. `?documents=true`: create tables of whole documents.
//
// Exactly once, and fenced: the rows of a batch and the item's progress, in the table
// muster_progress of the same file, change in one transaction. A commit survives a crash of the
// process at once, and a power failure after Flush. `env` must outlive the sink.
Result<std::unique_ptr<Sink>> OpenSqliteSink(const Url& url, Env& env);

}  // namespace muster::pipeline
