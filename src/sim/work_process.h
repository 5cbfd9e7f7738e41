#pragma once

#include <set>
#include <stop_token>
#include <string>

#include "sim/work_ledger.h"
#include "sim/work_scene.h"

namespace muster::sim {

inline constexpr char kLettersFile[] = "letters";

// A simulated worker process: the real RunWorker on the scene's services, restarted by an operator
// who follows its messages. `acknowledged` collects the dead letters that it has flushed.
void RunWorkProcess(const std::string& name, int slots, WorkScene& scene, WorkLedger& ledger,
                    std::set<std::string>& acknowledged, Env& env, std::stop_token stop);

}  // namespace muster::sim
