#pragma once

#include <cstdint>
#include <string>

#include "muster/pipeline.h"
#include "muster/result.h"

namespace muster {

// What a sink keeps of an item beside its documents; databases in one row of `muster_progress`.
struct StoredFence {
  std::string incarnation;
  int64_t epoch = 0;
  std::string holder;
  bool sealed = false;
  std::string progress;  // as JSON; empty: nothing was written yet
};

// What to do about a target that is not the one that was written to before.
inline constexpr char kLostTargetHint[] =
    "what was written before is gone: migrate everything anew, workers under another name (--run); "
    "only if the target was restored with all that was written to it, start one worker with "
    "--new-incarnation";

// Whether the item may be opened by `fence`. kLeaseLost: a newer holder has opened it, or another
// one with the same epoch, which only a store that lost commits grants twice. kConflict:
// another incarnation of the run wrote it, which `fence` does not adopt. `place` names the sink.
Status CheckOpen(const Fence& fence, const StoredFence& stored, const std::string& place);

// Whether a holder that has opened the item may still write. kLeaseLost: somebody else has opened
// it, or it was sealed.
Status CheckWrite(const Fence& fence, const StoredFence& stored, const std::string& place);

// The progress kept; Progress{} if nothing was written yet.
Result<Progress> ProgressOf(const StoredFence& stored);

// `after`, with the refused documents counted as failed or skipped instead of written.
Progress WithRefused(const Progress& after, const std::vector<Refused>& refused);

}  // namespace muster
