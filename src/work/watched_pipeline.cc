#include "work/watched_pipeline.h"

#include <utility>

namespace muster::work {

void WaitingObserver::Waits(const std::string& what) {
  const MutexLock lock(mutex_);
  Report(waits_.Known(what));
}

void WaitingObserver::NoteProgress() { Report(waits_.Advanced()); }

std::string WaitingObserver::Looked(std::string found) {
  const MutexLock lock(mutex_);
  return waits_.Looked(std::move(found));
}

void WaitingObserver::HasNotAnswered(const std::string& what) {
  const MutexLock lock(mutex_);
  NoteLook(what);
  Report(waits_.Unanswered(what));
}

void WaitingObserver::Report(const WaitReport::Change& change) {
  if (change) ReportWait(*change);
}

WatchedPipeline::WatchedPipeline(pipeline::Pipeline& pipeline, WaitingObserver& observer)
    : calls_(pipeline.env),
      source_(NewWatchedSource(pipeline.source, calls_)),
      sink_(NewWatchedSink(pipeline.sink, calls_)),
      pipeline_{pipeline.env,          *source_,          pipeline.transforms, *sink_,
                pipeline.dead_letters, pipeline.throttle, pipeline.options,    pipeline.chosen},
      watch_([this, &observer] { return observer.Looked(calls_.Look()); },
             [&observer](const std::string& what) { observer.HasNotAnswered(what); },
             pipeline.env) {}

}  // namespace muster::work
