#pragma once

#include <optional>
#include <stop_token>
#include <string>

#include "core/mutex.h"
#include "muster/progress.h"
#include "muster/store.h"
#include "muster/work.h"
#include "work/records.h"

namespace muster::work {

// What the slots of one worker know about a run between two counts of all its items. Thread-safe.
class FailureEstimate {
 public:
  // A batch is in the sink.
  void Add(const pipeline::Counts& batch);
  // Documents that were added are now in their item's record, or will not be.
  void Saved(const pipeline::Counts& these);
  void Dropped(const pipeline::Counts& these);

  // Of the documents that are in their items' records, those that the last count lacks.
  pipeline::Counts Uncounted() const;
  // A count that includes `uncounted`.
  void Counted(const pipeline::Counts& total, const pipeline::Counts& uncounted);

  pipeline::Counts Total() const;

 private:
  mutable Mutex mutex_;
  pipeline::Counts counted_ GUARDED_BY(mutex_);
  pipeline::Counts uncounted_ GUARDED_BY(mutex_);
  pipeline::Counts unsaved_ GUARDED_BY(mutex_);
};

// Stops a run of which too many documents fail. The run's record says so, which every worker reads
// before it takes an item and after each checkpoint. What has failed is counted in the items'
// records, by one worker at a time and at intervals that leave the store most of its time; and
// once more before the run is finished, so that no failures are missed. Used by one thread; the
// slots of a worker share the estimate. `store`, `env` and `estimate` must outlive it.
class ErrorBudget {
 public:
  ErrorBudget(store::Store& store, Env& env, std::string run, std::string worker,
              milliseconds lease, FailureEstimate& estimate)
      : store_(store),
        env_(env),
        run_(std::move(run)),
        worker_(std::move(worker)),
        lease_(lease),
        estimate_(estimate) {}

  // Learns what was counted before.
  void Begin();

  FailureEstimate& estimate() { return estimate_; }

  // Whether, by what this worker knows, too many have failed.
  bool Suspects() const { return limit_.IsExceeded(estimate_.Total()); }

  // The right to count. None: another worker counts, or has just done so.
  std::optional<store::Lease> ClaimCount(const std::stop_token& stop);

  // Counts, and stops the run if too many have failed. A failure is no reason to stop: others count
  // later.
  void Count(store::Lease claimed);

  // kCancelled: the run is stopped, or is being removed.
  Status CheckGoesOn();

  // Counts before the run is finished. An error as by work::CheckGoesOn: it is stopped.
  Status CountAll();

 private:
  Result<RunBody> ReadBody();
  Result<RunBody> CountNow(BudgetBody& counted);

  store::Store& store_;
  Env& env_;
  const std::string run_;
  const std::string worker_;
  const milliseconds lease_;
  FailureEstimate& estimate_;
  FailureLimit limit_;  // as last read
};

// Creates the record that the counts of a run are leased by, unless it exists. `earlier` documents
// count beside those of its items.
Status BeginBudget(store::Store& store, const std::string& run, const pipeline::Counts& earlier);

// Applies the limit, if given, to the body of a run that is joined, and lets a stopped run go on if
// it allows for what has failed by now. True: the body has changed.
Result<bool> SetLimit(store::Store& store, const std::string& run,
                      const std::optional<FailureLimit>& limit, RunBody& body);

}  // namespace muster::work
