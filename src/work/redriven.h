#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "muster/progress.h"
#include "muster/result.h"
#include "muster/store.h"
#include "muster/work.h"
#include "work/records.h"

namespace muster::work {

// What redrives have made of a run's dead letters. Every view of a run or an item counts by it.
class Redriven {
 public:
  static Result<Redriven> Of(store::Store& store, const std::string& run);

  // The counts of the whole run, or of an item, with its redriven documents moved from `failed` to
  // their new outcome.
  pipeline::Counts InRun(const pipeline::Counts& counts) const;
  pipeline::Counts InItem(const std::string& item, const pipeline::Counts& counts) const;
  // The same, and its reasons by StillFailed.
  void ApplyTo(ItemInfo& item) const;

 private:
  RedriveBody::Outcome total_;
  std::map<std::string, RedriveBody::Outcome> items_;
};

// The reasons of a run or an item of which `failed` documents are failed after redrives. None: no
// reasons. Which of several reasons redrives have settled is not known, so they stay as they are.
std::vector<FailureReason> StillFailed(std::vector<FailureReason> reasons, int64_t failed);

}  // namespace muster::work
