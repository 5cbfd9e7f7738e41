#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "muster/work.h"
#include "work/failure_reasons.h"
#include "work/redriven.h"  // IWYU pragma: export

namespace muster::work {

// Sums up items of a run.
class RunSummary {
 public:
  void Add(const ItemInfo& item);
  // Adds another summary of the same run.
  void Add(const RunSummary& other);

  int64_t held() const { return sum_.held; }

  // After all items. Moves redriven documents from `failed` to their new outcome.
  RunTotals Totals(const Redriven& redriven) const;

 private:
  RunTotals sum_;  // without what only Totals knows
  RecentRate recent_;
  FailureReasons reasons_{1'000};
  double sizes_ = 0;   // of the items whose size is known
  int64_t sized_ = 0;  // their number
};

// ListItems without redrives: `counts` are those of the progress.
Result<std::vector<ItemInfo>> ListItemsAsMigrated(store::Store& store, const std::string& run,
                                                  const std::string& after, int limit);

}  // namespace muster::work
