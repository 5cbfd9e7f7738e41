#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "muster/pipeline.h"
#include "pipeline/flow/item_fence.h"

namespace muster::pipeline {

// Base of writers that store an item's progress in the same transaction as its rows.
class TableWriter : public Writer {
 public:
  const std::optional<Progress>& Known() const override { return known_; }
  bool Sealed() const override { return stored_.sealed; }
  bool RecordsRefusals(RefusalRecorder record) override {
    record_ = std::move(record);
    return true;
  }

 protected:
  // Documents that changed while they were read come a second time, in a following item. Such an
  // item replaces rows of the same key; every other one refuses them.
  static bool ReplacesRows(const Fence& fence) { return fence.rank >= kFirstFollowerRank; }

  // Call before the first attempt to write a batch: each refusal is recorded once, however often
  // the batch is tried.
  void StartRecording() { recorded_.clear(); }

  // Call before the commit: after it, a crash would leave documents counted as failed but recorded
  // nowhere.
  Status Record(const Batch& batch, const std::vector<Refused>& refused);

  // A following item cannot replace rows without a key: both versions stay. Logged once.
  void WarnOfTwoVersions(const Fence& fence, const std::string& table);

  StoredFence stored_;  // as last read or written
  std::optional<Progress> known_;

 private:
  RefusalRecorder record_;
  std::vector<size_t> recorded_;  // documents of the current batch
  bool warned_ = false;
};

}  // namespace muster::pipeline
