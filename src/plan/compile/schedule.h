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

// The most of one thing at a time, and the rank in which it is reached first.
struct Peak {
  int64_t most = 0;
  size_t rank = 0;
};

// When everything begins and ends if nothing fails.
struct Schedule {
  double total_s = 0;
  std::vector<TaskTime> tasks;   // in the order in which the arrangement names them
  std::vector<size_t> critical;  // places in `tasks`: whatever is shorter there shortens the whole
  Peak flows;
  Peak jobs;
  Peak dpu;
  double dpu_seconds = 0;
};

// With the longest times that are expected, or the shortest.
Schedule MakeSchedule(const Plan& plan, const Step& root, StagingFormat format, bool slowest);

}  // namespace muster::plan
