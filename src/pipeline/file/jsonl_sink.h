#pragma once

#include <memory>

#include "core/url.h"
#include "muster/env.h"
#include "muster/pipeline.h"

namespace muster::pipeline {

// jsonl:FILE-OR-FOLDER: one document per line. `id` and `routing` name the fields to store them in.
Result<std::unique_ptr<Sink>> OpenJsonlSink(const Url& url, Env& env);

}  // namespace muster::pipeline
