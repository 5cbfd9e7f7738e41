#pragma once

#include "muster/pipeline.h"

namespace muster::pipeline {

// Whether the sink writes files. These are complete once their collection is finished: nothing can
// be added to them later.
bool WritesFiles(const Sink& sink);

}  // namespace muster::pipeline
