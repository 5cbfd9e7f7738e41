#pragma once

#include <memory>

#include "base/url.h"
#include "muster/env.h"
#include "muster/pipeline.h"

namespace muster {

// jsonl:FILE-OR-FOLDER: one document a line. `id` and `routing` name fields to keep them in.
Result<std::unique_ptr<Sink>> OpenJsonlSink(const Url& url, Env& env);

}  // namespace muster
