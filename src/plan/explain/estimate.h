#pragma once

#include "plan/model/plan.h"

namespace muster::plan {

// How long a task takes: as the plan says, or by its rows and the plan's rates. Parquet staging
// speeds up transforms, if the format is known.
SecondsRange EstimateExtract(const Plan& plan, const ExtractTask& task);
SecondsRange EstimateTransform(const Plan& plan, const Rank& rank, const TransformTask& task,
                               StagingFormat format);

}  // namespace muster::plan
