#include "work/redriven.h"

#include <algorithm>
#include <utility>

#include "store/store.h"

namespace muster::work {
namespace {

// An earlier version may have counted the same letters more than once.
pipeline::Counts Moved(pipeline::Counts counts, const RedriveBody::Outcome& outcome) {
  counts.added += outcome.added;
  counts.failed += outcome.added;
  const auto move = [&](int64_t many, int64_t& to) {
    const int64_t moved = std::clamp<int64_t>(many, 0, std::max<int64_t>(0, counts.failed));
    to += moved;
    counts.failed -= moved;
  };
  move(outcome.written, counts.written);
  move(outcome.skipped, counts.skipped);
  return counts;
}

}  // namespace

Result<Redriven> Redriven::Of(store::Store& store, const std::string& run) {
  Redriven redriven;
  for (store::RecordScan redrives(store, kRedriveKind, run + "/");;) {
    MUSTER_ASSIGN(const std::optional<store::Record> record, redrives.Next());
    if (!record) return redriven;
    MUSTER_ASSIGN(const RedriveBody body, RedriveBody::FromJson(record->body));
    redriven.total_ += body.total;
    for (const auto& [item, outcome] : body.items) redriven.items_[item] += outcome;
  }
}

pipeline::Counts Redriven::InRun(const pipeline::Counts& counts) const {
  return Moved(counts, total_);
}

pipeline::Counts Redriven::InItem(const std::string& item, const pipeline::Counts& counts) const {
  const auto found = items_.find(item);
  return found == items_.end() ? counts : Moved(counts, found->second);
}

void Redriven::ApplyTo(ItemInfo& item) const {
  item.counts = InItem(item.name, item.counts);
  item.reasons = StillFailed(std::move(item.reasons), item.counts.failed);
}

std::vector<FailureReason> StillFailed(std::vector<FailureReason> reasons, int64_t failed) {
  if (failed == 0) reasons.clear();
  if (reasons.size() == 1) reasons[0].count = std::min(reasons[0].count, failed);
  return reasons;
}

}  // namespace muster::work
