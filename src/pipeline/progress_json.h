#pragma once

#include "base/json.h"
#include "muster/pipeline.h"
#include "muster/result.h"

namespace muster {

// A progress as a part of something larger that is JSON; alone it is Progress::ToJson.
Json JsonOf(const Progress& progress);
Result<Progress> ProgressOf(const Json& json);

}  // namespace muster
