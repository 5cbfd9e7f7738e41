#pragma once

#include "cli/context.h"
#include "cli/snapshot_selection.h"
#include "muster/result.h"

namespace muster::cli {

// What `snapshot list`, `show` and `check` print, as tables or JSON. Each returns the exit code.

Result<int> ListSnapshots(const SnapshotSelection& selection, Context& context);

// Segment by segment, from the commits, without reading documents.
Result<int> ShowSegments(const SnapshotSelection& selection, Context& context);

// Reads every byte and every document; the first shard that fails is the error.
Result<int> CheckSnapshots(const SnapshotSelection& selection, Context& context);

}  // namespace muster::cli
