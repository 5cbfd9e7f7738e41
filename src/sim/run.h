#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "sim/simulation.h"
#include "sim/workload.h"

namespace muster::sim {

// The result of one seed.
struct SeedResult {
  uint64_t seed = 0;
  FaultPlan plan;
  std::optional<Violation> violation;
  uint64_t trace_hash = 0;
  int faults = 0;
  int64_t calls = 0;
  std::vector<std::string> trace;  // if kept
  Counters sometimes;
};

SeedResult RunSeed(const WorkloadInfo& workload, uint64_t seed, const FaultPlan& plan = {},
                   bool keep_trace = true);

// A range of seeds, and their results.
struct Campaign {
  uint64_t first = 1;
  uint64_t last = 1;          // inclusive
  int jobs = 1;               // concurrent seeds; results are the same for any number
  std::stop_token stop = {};  // no further seed is started
  std::function<void(uint64_t finished)> progress = {};  // called from any thread
};

struct CampaignResult {
  uint64_t seeds = 0;
  int64_t faults = 0;
  std::map<std::string, int64_t> sometimes;   // in how many seeds it happened
  std::map<uint64_t, uint64_t> trace_hashes;  // by seed
  std::optional<SeedResult> failure;          // the lowest seed that broke an invariant; no trace
};

// Runs the seeds of a campaign, up to the first failure.
CampaignResult RunCampaign(const WorkloadInfo& workload, const Campaign& campaign);

// Reruns a failing seed with ever fewer faults while it still breaks an invariant: whole kinds
// first, then all after the last one needed. The result is the run that is easiest to read.
SeedResult Minimise(const WorkloadInfo& workload, const SeedResult& failed);

}  // namespace muster::sim
