// Runs the simulator on code with a planted bug. Succeeds if it is found within fewer seeds than
// the correct code has passed: the proof that the simulator would find such a bug.

#include <atomic>
#include <cstdio>
#include <cstring>
#include <thread>

#include "core/log.h"
#include "core/planted_bug.h"
#include "sim/run.h"

namespace {

constexpr uint64_t kSeeds = 4'000;

const char* planted = "";
// A misspelt name must fail instead of being caught by accident.
std::atomic<bool> is_asked_for = false;

}  // namespace

bool muster::IsPlanted(const char* name) {
  if (std::strcmp(name, planted) != 0) return false;
  is_asked_for.store(true, std::memory_order_relaxed);
  return true;
}

// planted_bugs BUG [WORKLOAD]: in all workloads, or in the one meant to find it.
int main(int argc, char** argv) {
  using namespace muster::sim;
  if (argc < 2) return 2;
  planted = argv[1];
  muster::SetLogging(muster::Level::kOff, muster::LogFormat::kText);
  for (const WorkloadInfo& workload : Workloads()) {
    if (argc > 2 && workload.name != argv[2]) continue;
    const CampaignResult result =
        RunCampaign(workload, {.first = 1,
                               .last = kSeeds,
                               .jobs = static_cast<int>(std::thread::hardware_concurrency())});
    if (!result.failure || !is_asked_for) continue;
    std::printf("caught by workload %s in seed %llu: %s: %s\n", std::string(workload.name).c_str(),
                static_cast<unsigned long long>(result.failure->seed),
                result.failure->violation->invariant.c_str(),
                result.failure->violation->message.c_str());
    return 0;
  }
  if (!is_asked_for) std::printf("no code asks for %s\n", planted);
  std::printf("NOT caught within %llu seeds\n", static_cast<unsigned long long>(kSeeds));
  return 1;
}
