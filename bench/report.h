#pragma once

#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "claim_cost.h"

namespace muster::bench {

// Claim + complete, records per second.
struct Throughput {
  std::string backend;
  int workers = 0;
  int batch = 0;
  double ours = 0;  // medians of all rounds
  double raw = 0;
  double ratio = 0;  // median of what neighbouring rounds say: disks have good and bad minutes
};

struct FinishedCost {
  std::string backend;
  int64_t finished = 0;
  ClaimCost cost;
};

// Workers that claimed one item each at the same time, and the writes that were refused because
// another worker was faster.
struct Collisions {
  std::string backend;
  int workers = 0;
  int conflicts = 0;
};

struct Report {
  std::vector<Throughput> throughput;
  std::vector<FinishedCost> finished_cost;
  std::vector<Collisions> collisions;  // one for each round
  std::optional<double> start_up_ms;
  double idle_worker_mib = 0;
};

// What was promised, and whether it was kept.
struct Bar {
  std::string promise;
  std::string measured;  // the worst that counts for it
  bool holds = false;
};

std::vector<Bar> BarsOf(const Report& report);

void PrintText(const Report& report, std::ostream& out);
void PrintJson(const Report& report, std::ostream& out);

}  // namespace muster::bench
