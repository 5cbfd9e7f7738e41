// Runs the simulator on code into which a bug was planted at compile time. Succeeds if it is found
// within fewer seeds than the true code has passed: the proof that the simulator would find such a
// bug.

#include <cstdio>
#include <thread>

#include "base/log.h"
#include "sim/run.h"

namespace {

constexpr uint64_t kSeeds = 6'000;

}  // namespace

// planted_BUG [WORKLOAD]: in all workloads, or in the one that is meant to find it.
int main(int argc, char** argv) {
  using namespace muster::sim;
  muster::SetLogging(muster::Level::kOff, muster::LogFormat::kText);
  for (const WorkloadInfo& workload : Workloads()) {
    if (argc > 1 && workload.name != argv[1]) continue;
    const CampaignResult result =
        RunCampaign(workload, {.first = 1,
                               .last = kSeeds,
                               .jobs = static_cast<int>(std::thread::hardware_concurrency())});
    if (!result.failure) continue;
    std::printf("caught by workload %s in seed %llu: %s: %s\n", std::string(workload.name).c_str(),
                static_cast<unsigned long long>(result.failure->seed),
                result.failure->violation->invariant.c_str(),
                result.failure->violation->message.c_str());
    return 0;
  }
  std::printf("NOT caught within %llu seeds\n", static_cast<unsigned long long>(kSeeds));
  return 1;
}
