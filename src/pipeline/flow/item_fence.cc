#include "pipeline/flow/item_fence.h"

namespace muster::pipeline {
namespace {

std::string ItemAt(const Fence& fence, const std::string& place) {
  return place + ": item " + fence.item + " of run " + fence.run;
}

// `stored` is of the same incarnation.
bool SameHolder(const Fence& fence, const StoredFence& stored) {
  return stored.epoch == fence.epoch && stored.holder == fence.holder;
}

Error TakenOver(const Fence& fence, const StoredFence& stored, const std::string& place) {
  if (stored.epoch == fence.epoch) {
    return Error{Code::kLeaseLost,
                 ItemAt(fence, place) + " was opened by another holder of epoch " +
                     std::to_string(fence.epoch) + ": the store has granted it twice"};
  }
  return Error{Code::kLeaseLost, ItemAt(fence, place) + " was opened with epoch " +
                                     std::to_string(stored.epoch) + ", after this one's " +
                                     std::to_string(fence.epoch)};
}

}  // namespace

Status CheckOpen(const Fence& fence, const StoredFence& stored, const std::string& place) {
  if (stored.incarnation == fence.incarnation) {
    if (stored.epoch < fence.epoch || SameHolder(fence, stored)) return {};
    return TakenOver(fence, stored, place);
  }
  if (fence.adopts) return {};
  return Error{
      Code::kConflict, ItemAt(fence, place) + " was written by another incarnation of this run",
      "name this run differently, or start its workers with --new-incarnation to go on "
      "from what is there; to start over, empty the target: remove its files, or its rows and "
      "those of the run in muster_progress"};
}

Status CheckWrite(const Fence& fence, const StoredFence& stored, const std::string& place) {
  if (stored.incarnation != fence.incarnation) {
    return Error{Code::kLeaseLost,
                 ItemAt(fence, place) + " was taken over by another incarnation of the run"};
  }
  if (!SameHolder(fence, stored)) return TakenOver(fence, stored, place);
  if (stored.sealed) return Error{Code::kLeaseLost, ItemAt(fence, place) + " is sealed"};
  return {};
}

Result<Progress> ProgressOf(const StoredFence& stored) {
  if (stored.progress.empty()) return Progress{};
  return Progress::Parse(stored.progress);
}

Progress WithRefused(const Progress& after, const std::vector<Refused>& refused) {
  Progress progress = after;
  for (const Refused& one : refused) {
    --progress.counts.written;
    ++(one.skipped ? progress.counts.skipped : progress.counts.failed);
  }
  return progress;
}

}  // namespace muster::pipeline
