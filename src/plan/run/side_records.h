#pragma once

#include <string>

#include "muster/runs.h"
#include "muster/store.h"

namespace muster::plan {

// Records beside that of a run. They are not leased, so that any process may write them without
// disturbing the run's driver. Each names its attempt: later attempts ignore it.

// Asks the run's driver to drain this attempt. In force until dropped.
Status RequestDrain(store::Store& store, const RunState& run);
Result<bool> DrainRequested(store::Store& store, const RunState& run);
Status DropDrainRequest(store::Store& store, const std::string& id);

// What the driver publishes about the calls in progress. Nothing depends on it.
Status PublishLive(store::Store& store, const RunState& run, const LiveRun& live);
Result<LiveRun> ReadLive(store::Store& store, const RunState& run);

}  // namespace muster::plan
