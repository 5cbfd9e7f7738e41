#pragma once

#include <functional>

#include "muster/work.h"

namespace muster {

// Gives the stop requests for the next item.
using NextStops = std::function<StopRequests()>;

// What one thread of a worker does: prepares the run if that is still to be done, and migrates one
// shard after another. True: all is done; false: stopped.
Result<bool> RunSlot(WorkCoordinator& coordinator, Pipeline& pipeline, const WorkerOptions& options,
                     WorkObserver& observer, const NextStops& next_stops, std::stop_token stop);

}  // namespace muster
