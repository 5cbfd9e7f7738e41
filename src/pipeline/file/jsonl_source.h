#pragma once

#include <memory>

#include "core/url.h"
#include "muster/env.h"
#include "muster/pipeline.h"

namespace muster::pipeline {

// jsonl:FILE-OR-FOLDER: one JSON object per line. `id` and `routing` name the fields that hold
// them.
Result<std::unique_ptr<Source>> OpenJsonlSource(const Url& url, Env& env);

}  // namespace muster::pipeline
