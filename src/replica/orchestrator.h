#pragma once

#include <memory>
#include <vector>

#include "muster/replica.h"
#include "replica/read_model.h"

namespace muster::replica {

// NewOrchestrator on an open read model.
Result<std::unique_ptr<Orchestrator>> NewOrchestratorOn(
    store::Store& store, events::EventLog& events, std::unique_ptr<ReadModel> model,
    std::vector<std::shared_ptr<Projection>> projections, const ReplicaOptions& options,
    ReplicaObserver& observer, Env& env);

}  // namespace muster::replica
