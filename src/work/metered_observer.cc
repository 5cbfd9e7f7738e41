#include "work/metered_observer.h"

#include <utility>

#include "core/log.h"
#include "core/mutex.h"

namespace muster::work {
namespace {

Metrics::Counter DocumentsOf(Metrics& metrics, const char* outcome) {
  return metrics.GetCounter("muster_documents_total",
                            "Documents that this process has read, by outcome",
                            {{"outcome", outcome}});
}

}  // namespace

MeteredObserver::MeteredObserver(WorkObserver& observer, Metrics& metrics, net::Tracer& tracer,
                                 Env& env, std::string run, std::string worker)
    : WorkObserverWrapper(observer),
      metrics_(metrics),
      tracer_(tracer),
      env_(env),
      run_(std::move(run)),
      worker_(std::move(worker)),
      progress_(metrics.GetCounter("muster_progress_total", "Batches that are safely in the sink")),
      splits_(metrics.GetCounter("muster_splits_total", "Parts of items that were split off")),
      written_(DocumentsOf(metrics, "written")),
      skipped_(DocumentsOf(metrics, "skipped")),
      failed_(DocumentsOf(metrics, "failed")),
      bytes_(metrics.GetCounter("muster_document_bytes_total", "Bytes of these documents")) {}

void MeteredObserver::Acquired(const WorkItem& item, const pipeline::Progress& from) {
  metrics_
      .GetCounter("muster_leases_acquired_total", "Items that this process has acquired",
                  {{"takeover", item.fence().epoch > 1 ? "true" : "false"}})
      .Add();
  {
    const MutexLock lock(mutex_);
    seen_[item.name()] = {from.counts, env_.WallNow()};
  }
  Log(Level::kInfo, "item acquired",
      {{"run", run_},
       {"item", item.name()},
       {"worker", worker_},
       {"epoch", item.fence().epoch},
       {"read", from.counts.read}});
  WorkObserverWrapper::Acquired(item, from);
}

void MeteredObserver::Advanced(const WorkItem& item, const pipeline::Progress& progress) {
  progress_.Add();
  {
    const MutexLock lock(mutex_);
    pipeline::Counts& seen = seen_[item.name()].counts;
    written_.Add(static_cast<double>(progress.counts.written - seen.written));
    skipped_.Add(static_cast<double>(progress.counts.skipped - seen.skipped));
    failed_.Add(static_cast<double>(progress.counts.failed - seen.failed));
    bytes_.Add(static_cast<double>(progress.counts.bytes - seen.bytes));
    seen = progress.counts;
  }
  WorkObserverWrapper::Advanced(item, progress);
}

void MeteredObserver::Split(const WorkItem& item, const pipeline::Progress& progress) {
  splits_.Add();
  WorkObserverWrapper::Split(item, progress);
}

void MeteredObserver::Ended(const WorkItem& item, ShardOutcome outcome, const Error* why) {
  metrics_
      .GetCounter("muster_leases_ended_total", "Items that this process has released, by outcome",
                  {{"outcome", std::string(ShardOutcomeName(outcome))}})
      .Add();
  InHand had;
  {
    const MutexLock lock(mutex_);
    had = std::exchange(seen_[item.name()], {});
    seen_.erase(item.name());
  }
  const std::string error = why == nullptr ? "" : why->ToString();
  const std::string epoch = std::to_string(item.fence().epoch);
  tracer_.Add({.name = "item " + item.name(),
               .trace = run_,
               .itself = item.name() + " " + epoch,
               .start = had.since,
               .end = env_.WallNow(),
               .attributes = {{"muster.run", run_},
                              {"muster.item", item.name()},
                              {"muster.worker", worker_},
                              {"muster.epoch", epoch},
                              {"muster.outcome", std::string(ShardOutcomeName(outcome))}},
               .error = error});
  Log(Level::kInfo, "item ended",
      {{"run", run_},
       {"item", item.name()},
       {"worker", worker_},
       {"epoch", item.fence().epoch},
       {"outcome", ShardOutcomeName(outcome)},
       {"why", error}});
  WorkObserverWrapper::Ended(item, outcome, why);
}

}  // namespace muster::work
