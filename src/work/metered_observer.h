#pragma once

#include <map>
#include <string>

#include "core/metrics.h"
#include "core/mutex.h"
#include "net/tracer.h"
#include "work/observer_wrapper.h"

namespace muster::work {

// Reports items to metrics, traces and logs, and forwards to another observer:
// muster_leases_acquired_total, muster_leases_ended_total by outcome, muster_progress_total,
// muster_splits_total, muster_documents_total by outcome and muster_document_bytes_total.
// Thread-safe; arguments must outlive it.
class MeteredObserver final : public WorkObserverWrapper {
 public:
  // `run` and `worker` name them in traces and logs.
  MeteredObserver(WorkObserver& observer, Metrics& metrics, net::Tracer& tracer, Env& env,
                  std::string run, std::string worker);

  void Acquired(const WorkItem& item, const pipeline::Progress& from) override;
  void Advanced(const WorkItem& item, const pipeline::Progress& progress) override;
  void Split(const WorkItem& item, const pipeline::Progress& progress) override;
  void Ended(const WorkItem& item, ShardOutcome outcome, const Error* why) override;

 private:
  struct InHand {
    pipeline::Counts counts = {};
    WallTime since{};
  };

  Metrics& metrics_;
  net::Tracer& tracer_;
  Env& env_;
  const std::string run_;
  const std::string worker_;
  const Metrics::Counter progress_;
  const Metrics::Counter splits_;
  const Metrics::Counter written_;
  const Metrics::Counter skipped_;
  const Metrics::Counter failed_;
  const Metrics::Counter bytes_;
  Mutex mutex_;
  std::map<std::string, InHand> seen_ GUARDED_BY(mutex_);
};

}  // namespace muster::work
