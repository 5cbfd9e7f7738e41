#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "muster/work.h"

namespace muster::work {

// Whether it has a holder right now.
bool IsHeld(const ItemInfo& item);

// Combined recent rate of documents read.
class RecentRate {
 public:
  void Add(const ItemInfo& item);
  void Add(const RecentRate& other);
  double PerSecond() const;

 private:
  double documents_ = 0;
  milliseconds span_{0};
};

// The holder's remaining time at this rate.
std::optional<milliseconds> TimeLeft(const ItemInfo& item);

// Totals over a run's items.
class RunSummary {
 public:
  static Result<RunSummary> Of(store::Store& store, const std::string& run);

  void Add(const ItemInfo& item);
  // Adds another summary of the same run.
  void Add(const RunSummary& other);

  // After all items: moves redriven documents from `failed` to their new outcome.
  Status AddRedrives(store::Store& store, const std::string& run);

  // Estimated number of documents in the run: started items extrapolate from their progress, and
  // the others are assumed to be as large. None: nothing started.
  std::optional<double> Documents() const;

  // Time until everything is done, at this rate for the whole run.
  std::optional<milliseconds> Left(double rate) const;

  int64_t items = 0;
  int64_t done = 0;
  int64_t held = 0;
  int64_t waiting = 0;
  int64_t quarantined = 0;
  int64_t unreadable = 0;
  std::string last_error;  // of an item without a holder
  pipeline::Counts counts;
  // Recent; 0 once nothing is left to do.
  double docs_per_second() const { return held + waiting > 0 ? pace_.PerSecond() : 0; }

 private:
  RecentRate pace_;
  std::optional<milliseconds> longest_;  // that a holder still needs
  double sizes_ = 0;                     // of the items whose size is known
  int64_t sized_ = 0;                    // their number
};

// ListItems without redrives: `counts` are those of the progress. For totals, which AddRedrives
// completes.
Result<std::vector<ItemInfo>> ListItemsAsMigrated(store::Store& store, const std::string& run,
                                                  const std::string& after, int limit);

// Every item of the run, in key order.
Status EachItem(store::Store& store, const std::string& run,
                const std::function<void(const ItemInfo& item)>& each);

// "open", "done", "quarantined" or "unreadable".
std::string_view ItemStateName(ItemInfo::State state);

// "preparing", "running" (a worker holds an item), "waiting" (none does), "finished" or
// "unreadable".
std::string_view RunStateName(const RunInfo& run, const RunSummary& sum);

// Why no worker is active, and what to do; empty if one is, or if nothing is left to do.
std::string WhyRun(const RunInfo& run, const RunSummary& sum);

// Why the item has no holder, or who holds it; empty when done.
std::string WhyItem(const ItemInfo& item);

// "5 s", "12 min", "3 h".
std::string FormatSpan(milliseconds span);

}  // namespace muster::work
