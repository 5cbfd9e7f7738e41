#pragma once

#include <cstdint>
#include <string>

#include "core/json.h"
#include "core/record_version.h"
#include "muster/pipeline.h"
#include "muster/result.h"

namespace muster::pipeline {

// What a sink stores about an item beside its documents; databases use one row of
// `muster_progress`.
struct StoredFence {
  std::string incarnation;
  int64_t epoch = 0;
  std::string holder;
  bool sealed = false;
  std::string progress;  // as JSON; empty: nothing written yet
};

// The table, whose rows a database changes together with the documents.
inline constexpr RecordFormat kProgressFormat{"muster_progress", 1};

// What to do if the target is not the one written to before.
inline constexpr char kLostTargetHint[] =
    "what was written before is gone: migrate everything again, workers under another name "
    "(--run); "
    "only if the target was restored with all that was written to it, start one worker with "
    "--new-incarnation";

// Whether `fence` may open the item. kLeaseLost: a newer holder has opened it, or another one with
// the same epoch, which only a store that lost commits can grant. kConflict: another incarnation of
// the run wrote it and `fence` does not adopt it. `place` names the sink.
Status CheckOpen(const Fence& fence, const StoredFence& stored, const std::string& place);

// Whether the current holder may still write. kLeaseLost: another holder has opened the item, or it
// was sealed.
Status CheckWrite(const Fence& fence, const StoredFence& stored, const std::string& place);

// Progress within a larger JSON value; on its own it is Progress::ToString.
Json JsonOf(const Progress& progress);
Result<Progress> ProgressOf(const Json& json);

// The stored progress; Progress{} if nothing was written yet.
Result<Progress> ProgressOf(const StoredFence& stored);

// `after`, with refused documents counted as failed or skipped instead of written.
Progress WithRefused(const Progress& after, const std::vector<Refused>& refused);

}  // namespace muster::pipeline
