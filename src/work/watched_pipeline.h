#pragma once

#include <memory>
#include <string>

#include "core/mutex.h"
#include "core/wait_watch.h"
#include "muster/pipeline.h"
#include "muster/work.h"
#include "work/call_watch.h"
#include "work/observer_wrapper.h"
#include "work/wait_report.h"

namespace muster::work {

// An observer that also hears of calls which do not return, from a WatchedPipeline.
class WaitingObserver : public WorkObserverWrapper {
 public:
  WaitingObserver() : WorkObserverWrapper(nothing_) {}
  // Forwards to `inner`, except waits, which ReportWait gets.
  explicit WaitingObserver(WorkObserver& inner) : WorkObserverWrapper(inner) {}

  void Waits(const std::string& what) final;

 protected:
  // An item has made progress.
  void NoteProgress() REQUIRES(mutex_);

  // What is waited for now; empty: nothing any more. With the lock: a report that is late must not
  // replace a later one.
  virtual void ReportWait(const std::string& what) REQUIRES(mutex_) = 0;

  // What a look at the calls has found, reported or not; empty: nothing any more.
  virtual void NoteLook(const std::string& /*what*/) REQUIRES(mutex_) {}

  Mutex mutex_;

 private:
  friend class WatchedPipeline;
  std::string Looked(std::string found);
  void HasNotAnswered(const std::string& what);
  void Report(const WaitReport::Change& change) REQUIRES(mutex_);

  WorkObserver nothing_;
  WaitReport waits_ GUARDED_BY(mutex_);
};

// A pipeline whose source and sink are watched while this object lives. The arguments must outlive
// it.
class WatchedPipeline {
 public:
  WatchedPipeline(pipeline::Pipeline& pipeline, WaitingObserver& observer);

  pipeline::Pipeline& pipeline() { return pipeline_; }

 private:
  CallWatch calls_;
  const std::unique_ptr<pipeline::Source> source_;
  const std::unique_ptr<pipeline::Sink> sink_;
  pipeline::Pipeline pipeline_;
  const WaitWatch watch_;  // last: uses the other members
};

}  // namespace muster::work
