#pragma once

#include "plan/model/plan.h"

namespace muster::plan {

// How long a task takes: as the plan says, or by its rows and the plan's rates. Parquet staging
// speeds up transforms, if the format is known.
// `plan.rates` must be those of the profile.
SecondsRange EstimateExtract(const Plan& plan, const ExtractTask& task);
SecondsRange EstimateTransform(const Plan& plan, const Rank& rank, const TransformTask& task,
                               StagingFormat format);

// Only services take time to start: not what this program runs itself.
inline Rates RatesOf(const Plan& plan, ProfileKind kind) {
  Rates rates = plan.rates;
  if (kind != ProfileKind::kAws) rates.start_s = 0;
  return rates;
}

}  // namespace muster::plan
