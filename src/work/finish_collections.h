#pragma once

#include <string>
#include <vector>

#include "work/coordinator.h"

namespace muster::work {

// The collections that the preparation of a run selected; if it did not record them, those that the
// source lists now.
Result<std::vector<std::string>> SelectedCollections(store::Store& store, const std::string& run,
                                                     pipeline::Source& source,
                                                     const pipeline::CollectionFilter& allowed);

// All items are settled: compares what was read with the source's own count, finishes the
// collections without quarantined items in the sink, and records the end of the run. False: another
// incarnation has begun since, or another slot of this worker is at it.
Result<bool> FinishCollections(WorkCoordinator& coordinator, pipeline::Pipeline& pipeline,
                               const pipeline::CollectionFilter& allowed);

}  // namespace muster::work
