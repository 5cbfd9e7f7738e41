#include <utility>

#include "core/log.h"
#include "core/mutex.h"
#include "core/wait_watch.h"
#include "work/call_watch.h"
#include "work/wait_report.h"
#include "work/worker.h"

namespace muster::work {
namespace {

// Looks; some ten seconds: a single slow call is not worth a line of the log.
constexpr int kWorthLogging = 3;

// Adds calls that do not return to what the worker waits for.
class WaitingObserver final : public WorkObserver {
 public:
  WaitingObserver(WorkObserver& observer, std::string worker)
      : observer_(observer), worker_(std::move(worker)) {}

  void Acquired(const WorkItem& item, const pipeline::Progress& from) override {
    observer_.Acquired(item, from);
  }
  void Advanced(const WorkItem& item, const pipeline::Progress& progress) override {
    {
      const MutexLock lock(mutex_);
      Report(waits_.Advanced());
    }
    observer_.Advanced(item, progress);
  }
  void Renewed(const WorkItem& item) override { observer_.Renewed(item); }
  void Split(const WorkItem& item, const pipeline::Progress& progress) override {
    observer_.Split(item, progress);
  }
  void Ended(const WorkItem& item, ShardOutcome outcome, const Error* why) override {
    observer_.Ended(item, outcome, why);
  }
  void Waits(const std::string& what) override {
    const MutexLock lock(mutex_);
    Report(waits_.Known(what));
  }

  std::string Looked(std::string found) {
    const MutexLock lock(mutex_);
    return waits_.Looked(std::move(found));
  }
  void HasNotAnswered(const std::string& what) {
    const MutexLock lock(mutex_);
    LogWait(what);
    Report(waits_.Unanswered(what));
  }

 private:
  // With the lock: a report that is late must not replace a later one.
  void Report(const WaitReport::Change& change) REQUIRES(mutex_) {
    if (change) observer_.Waits(*change);
  }

  void LogWait(const std::string& what) REQUIRES(mutex_) {
    if (!what.empty()) {
      if (++looks_ == kWorthLogging)
        Log(Level::kWarning, "a worker waits", {{"worker", worker_}, {"for", what}});
      return;
    }
    // At the level of the warning it revokes.
    if (std::exchange(looks_, 0) >= kWorthLogging)
      Log(Level::kWarning, "a worker waits no longer", {{"worker", worker_}});
  }

  WorkObserver& observer_;
  const std::string worker_;
  Mutex mutex_;
  WaitReport waits_ GUARDED_BY(mutex_);
  int looks_ GUARDED_BY(mutex_) = 0;  // that found the same wait
};

}  // namespace

Result<WorkerReport> RunWorker(store::Store& store, pipeline::Pipeline& pipeline,
                               const WorkerOptions& options, WorkObserver& observer,
                               std::stop_token stop) {
  CallWatch calls(pipeline.env);
  const auto source = NewWatchedSource(pipeline.source, calls);
  const auto sink = NewWatchedSink(pipeline.sink, calls);
  pipeline::Pipeline watched{pipeline.env,          *source,           pipeline.transforms, *sink,
                             pipeline.dead_letters, pipeline.throttle, pipeline.options};
  WaitingObserver waiting(observer, options.worker);
  const WaitWatch watch([&] { return waiting.Looked(calls.Look()); },
                        [&](const std::string& what) { waiting.HasNotAnswered(what); },
                        pipeline.env);
  return RunUnwatchedWorker(store, watched, options, waiting, std::move(stop));
}

}  // namespace muster::work
