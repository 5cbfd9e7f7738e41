#pragma once

#include <string>
#include <vector>

#include "plan/compile/arrangement.h"
#include "plan/model/plan.h"

namespace muster::plan {

struct TaskTime {
  size_t rank = 0;
  Phase phase = Phase::kExtract;
  std::string name;
  int64_t dpu = 0;
  double start_s = 0;
  double end_s = 0;

  double length_s() const { return end_s - start_s; }
};

// The maximum at any one time, and the rank that first reaches it.
struct Peak {
  int64_t most = 0;
  size_t rank = 0;
};

// When everything starts and ends if nothing fails.
struct Schedule {
  double total_s = 0;
  std::vector<TaskTime> tasks;   // in the arrangement's order
  std::vector<size_t> critical;  // indices in `tasks`; shortening one shortens the whole
  Peak flows;
  Peak jobs;
  Peak dpu;
  double dpu_seconds = 0;
};

// By the longest or the shortest expected times.
Schedule MakeSchedule(const Plan& plan, const Step& root, StagingFormat format, bool slowest);

}  // namespace muster::plan
