#pragma once

#include <memory>

#include "core/url.h"
#include "muster/env.h"
#include "muster/pipeline.h"

namespace muster::pipeline {

// csv:FILE-OR-FOLDER: one record per document, one column per field.
Result<std::unique_ptr<Sink>> OpenCsvSink(const Url& url, Env& env);

}  // namespace muster::pipeline
