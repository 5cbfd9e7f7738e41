// Goal: no seed breaks an invariant, and together they trigger every fault of the catalogue. A seed
// that ever failed is added to tests/data/sim_seeds.txt and runs here forever.

#include <gtest/gtest.h>

#include <fstream>
#include <thread>

#include "core/log.h"
#include "sim/run.h"

namespace muster::sim {
namespace {

// Simulated failures are not worth logging.
const bool kQuiet = (SetLogging(Level::kOff, LogFormat::kText), true);

constexpr uint64_t kSeeds = 2'000;

void ExpectClean(const WorkloadInfo& workload, const SeedResult& result) {
  if (!result.violation) return;
  const SeedResult minimal = Minimise(workload, result);
  for (const std::string& line : minimal.trace) std::cout << line << "\n";
  ADD_FAILURE() << "again: muster sim --workload " << workload.name << " --seed " << result.seed
                << "\n"
                << minimal.violation->invariant << ": " << minimal.violation->message;
}

TEST(Campaign, EveryWorkloadPassesAllSeedsAndMeetsEveryFault) {
  for (const WorkloadInfo& workload : Workloads()) {
    const CampaignResult result = RunCampaign(
        workload, {.first = 1,
                   .last = workload.seeds,
                   .jobs = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()))});
    if (result.failure) return ExpectClean(workload, *result.failure);
    for (const std::string& what : workload.sometimes) {
      EXPECT_TRUE(result.sometimes.contains(what))
          << workload.name << ": it never happened that " << what;
    }
    for (const auto& [what, seeds] : result.sometimes) {
      std::cout << workload.name << ": in " << seeds << " seeds " << what << "\n";
    }
  }
}

// Nothing else goes wrong, so that any failure is due to this one crash.
TEST(Campaign, CrashAtEverySingleCallLosesNothing) {
  for (const WorkloadInfo& workload : Workloads()) {
    int worlds = 0;
    for (uint64_t seed = 1; worlds < workload.small_worlds; ++seed) {
      ASSERT_LE(seed, kSeeds) << workload.name << " has no small worlds";
      FaultPlan plan = FaultPlan::None();
      const int64_t calls = RunSeed(workload, seed, plan).calls;
      // Small worlds are crashed at every point, large ones at none.
      if (calls > workload.small_world) continue;
      ++worlds;
      for (plan.crash_at = 1; plan.crash_at <= calls; ++plan.crash_at) {
        const SeedResult result = RunSeed(workload, seed, plan);
        ASSERT_FALSE(result.violation)
            << "seed " << seed << ", crash at call " << plan.crash_at << ": "
            << result.violation->invariant << ": " << result.violation->message;
      }
    }
  }
}

TEST(Campaign, SeedsThatOnceFailedPass) {
  std::ifstream file(MUSTER_SIM_SEEDS);
  ASSERT_TRUE(file) << MUSTER_SIM_SEEDS;
  int runs = 0;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    const size_t space = line.find(' ');
    ASSERT_NE(space, std::string::npos) << line;
    for (const WorkloadInfo& workload : Workloads()) {
      if (workload.name != line.substr(0, space)) continue;
      ++runs;
      const uint64_t seed = std::stoull(line.substr(space));
      ExpectClean(workload, RunSeed(workload, seed));
      // As it was when it failed: kinds added later would change everything.
      FaultPlan older;
      for (size_t kind = static_cast<size_t>(Fault::kSuspend); kind < kFaultKinds; ++kind)
        older.allowed[kind] = false;
      ExpectClean(workload, RunSeed(workload, seed, older));
    }
  }
  EXPECT_GT(runs, 0);
}

}  // namespace
}  // namespace muster::sim
