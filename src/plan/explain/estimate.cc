#include "plan/explain/estimate.h"

namespace muster::plan {

SecondsRange EstimateExtract(const Plan& plan, const ExtractTask& task) {
  if (task.time) return *task.time;
  const auto rows = static_cast<double>(task.rows);
  return {plan.rates.start_s + rows / plan.rates.extract_rows_per_s.max,
          plan.rates.start_s + rows / plan.rates.extract_rows_per_s.min};
}

SecondsRange EstimateTransform(const Plan& plan, const Rank& rank, const TransformTask& task,
                               StagingFormat format) {
  SecondsRange range;
  if (task.time) {
    range = *task.time;
  } else {
    double rows = 0;
    for (const std::string& object : plan.ReadBy(task, rank))
      rows += static_cast<double>(plan.objects.at(object).rows);
    const auto dpu = static_cast<double>(task.dpu);
    range = {plan.rates.start_s + rows / (plan.rates.transform_rows_per_dpu_s.max * dpu),
             plan.rates.start_s + rows / (plan.rates.transform_rows_per_dpu_s.min * dpu)};
  }
  // The given times are for JSON.
  const double speedup = format == StagingFormat::kParquet ? plan.rates.parquet_speedup : 1;
  return {range.min / speedup, range.max / speedup};
}

}  // namespace muster::plan
