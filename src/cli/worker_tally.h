#pragma once

#include <map>
#include <stop_token>
#include <string>

#include "cli/progress.h"
#include "core/mutex.h"
#include "muster/env.h"
#include "muster/store.h"
#include "muster/work.h"

namespace muster::cli {

// Sums up and reports what this worker does. Thread-safe; `progress` must outlive it.
class WorkerTally final : public work::WorkObserver {
 public:
  explicit WorkerTally(cli::Progress& progress) : progress_(progress) {}

  void Acquired(const work::WorkItem& item, const muster::pipeline::Progress& from) override;
  void Advanced(const work::WorkItem& item, const muster::pipeline::Progress& progress) override;
  void Renewed(const work::WorkItem& item) override;
  void Split(const work::WorkItem& item, const muster::pipeline::Progress& progress) override;
  void Ended(const work::WorkItem& item, work::ShardOutcome outcome, const Error* why) override;
  void Waits(const std::string& what) override;

  // How far the whole run is, and its time left, "1m42s left" or empty. That is not shown while
  // this worker waits, unless others advance: by the average rate it would only grow.
  void SetRun(const std::string& words, const std::string& time_left, bool advances);

  std::map<std::string, pipeline::Counts> sums() const;  // by collection
  int items() const;                                     // how many have ended

 private:
  struct InProgress {
    pipeline::Counts from;     // when it was acquired
    pipeline::Counts durable;  // at its last checkpoint: what was read since may be read again
    pipeline::Counts seen;
  };

  void Add(const work::WorkItem& item, work::ShardOutcome outcome) REQUIRES(mutex_);
  void ShowNote() REQUIRES(mutex_);
  std::string WhatIsWaitedFor() const REQUIRES(mutex_);

  cli::Progress& progress_;
  mutable Mutex mutex_;
  std::string waits_ GUARDED_BY(mutex_);
  std::string run_ GUARDED_BY(mutex_);
  std::string time_left_ GUARDED_BY(mutex_);
  std::map<std::string, InProgress> items_in_progress_ GUARDED_BY(mutex_);  // by name
  std::map<std::string, pipeline::Counts> sums_ GUARDED_BY(mutex_);         // by collection
  int64_t read_ GUARDED_BY(mutex_) = 0;
  int items_ GUARDED_BY(mutex_) = 0;
};

// Shows the whole run's progress, by all workers, until a stop. Looks rarely enough to cost the
// store at most a twentieth of its time.
void FollowRun(store::Store& store, const std::string& run, Env& env, WorkerTally& tally,
               const std::stop_token& stop);

}  // namespace muster::cli
