#pragma once

#include <functional>

#include "work/coordinator.h"

namespace muster::work {

// Provides the stop requests for the next item.
using NextStops = std::function<StopRequests()>;

// One thread of a worker: prepares the run if needed, and migrates shard after shard. True: all
// done; false: stopped.
Result<bool> RunSlot(WorkCoordinator& coordinator, pipeline::Pipeline& pipeline,
                     const WorkerOptions& options, WorkObserver& observer,
                     const NextStops& next_stops, std::stop_token stop);

}  // namespace muster::work
