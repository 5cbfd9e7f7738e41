#pragma once

#include <functional>
#include <optional>
#include <string>

#include "muster/work.h"

namespace muster {

// Whether somebody has it right now.
bool IsHeld(const ItemInfo& item);

// How many documents items have been read at a time recently, together.
class RecentRate {
 public:
  void Add(const ItemInfo& item);
  void Add(const RecentRate& other);
  double PerSecond() const;

 private:
  double documents_ = 0;
  milliseconds span_{0};
};

// How long the item's holder still needs, if it goes on like this.
std::optional<milliseconds> TimeLeft(const ItemInfo& item);

// What a run comes to, item by item.
class RunSummary {
 public:
  static Result<RunSummary> Of(Store& store, const std::string& run);

  void Add(const ItemInfo& item);
  // The items of another summary of the same run.
  void Add(const RunSummary& other);

  // Moves what was redriven from `failed` to what became of it.
  Status AddRedrives(Store& store, const std::string& run);

  // About how many documents the run has: items that are begun tell their size by how far they
  // are, and the others are taken to be as large as those. None: nothing is begun.
  std::optional<double> Documents() const;

  // Until all is done, at this rate of the whole run.
  std::optional<milliseconds> Left(double rate) const;

  int64_t items = 0;
  int64_t done = 0;
  int64_t held = 0;
  int64_t waiting = 0;
  int64_t quarantined = 0;
  int64_t unreadable = 0;
  std::string last_error;  // of an item without a holder
  Counts counts;
  // Recently; 0 once nothing is left to do.
  double docs_per_second() const { return held + waiting > 0 ? pace_.PerSecond() : 0; }

 private:
  RecentRate pace_;
  std::optional<milliseconds> longest_;  // that a holder still needs
  double sizes_ = 0;                     // of the items whose size can be told
  int64_t sized_ = 0;                    // so many
};

// Every item of the run, in the order of their keys.
Status EachItem(Store& store, const std::string& run,
                const std::function<void(const ItemInfo& item)>& each);

}  // namespace muster
