#pragma once

#include "muster/work.h"

namespace muster::work {

// RunWorker without the notice of calls that do not return, which takes a thread of its own: for
// the simulator, and for callers that watch their calls.
Result<WorkerReport> RunUnwatchedWorker(store::Store& store, pipeline::Pipeline& pipeline,
                                        const WorkerOptions& options, WorkObserver& observer,
                                        std::stop_token stop);

}  // namespace muster::work
