#pragma once

#include "base/json.h"
#include "muster/pipeline.h"
#include "muster/result.h"

namespace muster {

// Progress embedded in a larger JSON value; on its own it is Progress::ToJson.
Json JsonOf(const Progress& progress);
Result<Progress> ProgressOf(const Json& json);

}  // namespace muster
