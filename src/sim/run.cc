#include "sim/run.h"

#include <atomic>
#include <thread>

#include "core/mutex.h"

namespace muster::sim {

SeedResult RunSeed(const WorkloadInfo& info, uint64_t seed, const FaultPlan& plan,
                   bool keep_trace) {
  // Destroys the simulation before the services that its processes use.
  const std::unique_ptr<Workload> workload = info.create();
  Simulation sim(seed, plan, keep_trace);
  workload->Setup(sim);
  sim.Run();
  if (!sim.violation()) workload->Check();
  return {.seed = seed,
          .plan = plan,
          .violation = sim.violation(),
          .trace_hash = sim.trace_hash(),
          .faults = sim.faults_fired(),
          .calls = sim.calls(),
          .trace = std::move(sim.trace()),
          .sometimes = std::move(sim.sometimes())};
}

CampaignResult RunCampaign(const WorkloadInfo& workload, const Campaign& campaign) {
  struct {
    Mutex mutex;
    CampaignResult result GUARDED_BY(mutex);
  } shared;
  std::atomic<uint64_t> next = campaign.first;
  std::atomic<bool> failed = false;
  const auto run_some = [&] {
    while (!failed && !campaign.stop.stop_requested()) {
      // Seeds are handed out in order and finished once started: the lowest failure is the same for
      // any number of jobs.
      const uint64_t seed = next++;
      if (seed > campaign.last) return;
      SeedResult result = RunSeed(workload, seed, {}, /*keep_trace=*/false);
      const MutexLock lock(shared.mutex);
      CampaignResult& all = shared.result;
      ++all.seeds;
      all.faults += result.faults;
      all.trace_hashes[seed] = result.trace_hash;
      for (const auto& [what, count] : result.sometimes) ++all.sometimes[what];
      if (campaign.progress) campaign.progress(all.seeds);
      if (result.violation) {
        failed = true;
        if (!all.failure || seed < all.failure->seed) all.failure = std::move(result);
      }
    }
  };
  std::vector<std::jthread> threads;
  threads.reserve(static_cast<size_t>(campaign.jobs));
  for (int job = 0; job < campaign.jobs; ++job) threads.emplace_back(run_some);
  threads.clear();
  const MutexLock lock(shared.mutex);
  return std::move(shared.result);
}

SeedResult Minimise(const WorkloadInfo& workload, const SeedResult& failed) {
  FaultPlan best = failed.plan;
  int faults = failed.faults;
  const auto still_fails = [&](const FaultPlan& plan) {
    const SeedResult tried = RunSeed(workload, failed.seed, plan, /*keep_trace=*/false);
    if (!tried.violation) return false;
    best = plan;
    faults = tried.faults;
    return true;
  };
  for (size_t kind = 0; kind < kFaultKinds; ++kind) {
    FaultPlan plan = best;
    plan.allowed[kind] = false;
    still_fails(plan);
  }
  // Only faults before the violation can matter: halve their number while one remains. A smaller
  // number than the one found may lead to another violation, which does not matter.
  for (int least = 0; least < faults;) {
    FaultPlan plan = best;
    plan.most = least + (faults - least) / 2;
    if (!still_fails(plan)) least = plan.most + 1;
  }
  SeedResult minimal = RunSeed(workload, failed.seed, best);
  // Not reproducible: the run depends on more than the seed.
  return minimal.violation ? minimal : failed;
}

}  // namespace muster::sim
