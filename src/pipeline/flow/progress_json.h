#pragma once

#include "core/json.h"
#include "muster/pipeline.h"
#include "muster/result.h"

namespace muster::pipeline {

// Progress embedded in a larger JSON value; on its own it is Progress::ToJson.
Json JsonOf(const Progress& progress);
Result<Progress> ProgressOf(const Json& json);

}  // namespace muster::pipeline
