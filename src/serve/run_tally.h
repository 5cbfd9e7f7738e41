#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/mutex.h"
#include "muster/result.h"
#include "muster/work.h"
#include "serve/failures.h"
#include "serve/site.h"
#include "work/work.h"

namespace muster::serve {

// Summaries of all runs of a store, at a cost independent of the number of items: the first refresh
// reads every item; each later one reads at most kMaxPages pages of 1,000 items and keeps the sums
// of the others. Stores with fewer items are read whole every time; in larger ones a change shows
// when its page comes round, and pages with held items come round first. Thread-safe.
class RunTallies {
 public:
  static constexpr int kMaxPages = 10;

  struct Run {
    work::RunInfo info;
    work::RunTotals totals;
    FailureGroups failures;  // of its items
  };
  Result<std::vector<Run>> Refresh(const SiteStore& store);

 private:
  // The items with keys in (after, last], or to the end if that is empty.
  struct Page {
    std::string after;
    std::string last;
    work::RunSummary sum = {};
    FailureGroups failures = {};
    int64_t read = 0;  // the refresh that read it
  };
  struct Tally {
    std::string incarnation;
    bool finished = false;
    std::vector<Page> pages = {};  // in the order of their keys; none: not read yet
  };
  struct Due {
    std::string run;
    std::string after;
    int64_t read = 0;
    bool active = false;    // an item of it is held
    bool finished = false;  // the run is
  };

  void Keep(const std::vector<work::RunInfo>& runs) REQUIRES(mutex_);
  Status ReadNewRuns(const SiteStore& store) REQUIRES(mutex_);
  std::vector<Due> Choose() const REQUIRES(mutex_);
  // Replaces a page by what its range holds now, which may be several pages.
  Status ReadAgain(const SiteStore& store, const Due& due) REQUIRES(mutex_);
  Result<std::vector<Page>> ReadRange(const SiteStore& store, const std::string& run,
                                      std::string after, const std::string& last) const
      REQUIRES(mutex_);

  Mutex mutex_;
  int64_t refreshes_ GUARDED_BY(mutex_) = 0;
  std::map<std::string, Tally> tallies_ GUARDED_BY(mutex_);  // by run
};

}  // namespace muster::serve
