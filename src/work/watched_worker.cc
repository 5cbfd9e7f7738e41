#include <utility>

#include "core/log.h"
#include "work/watched_pipeline.h"
#include "work/worker.h"

namespace muster::work {
namespace {

// Looks; some ten seconds: a single slow call is not worth a line of the log.
constexpr int kWorthLogging = 3;

// Adds calls that do not return to what the worker waits for.
class WorkerWatch final : public WaitingObserver {
 public:
  WorkerWatch(WorkObserver& observer, std::string worker)
      : WaitingObserver(observer), worker_(std::move(worker)) {}

  void Advanced(const WorkItem& item, const pipeline::Progress& progress) override {
    {
      const MutexLock lock(mutex_);
      NoteProgress();
    }
    WaitingObserver::Advanced(item, progress);
  }

 private:
  void ReportWait(const std::string& what) REQUIRES(mutex_) override { inner().Waits(what); }

  void NoteLook(const std::string& what) REQUIRES(mutex_) override {
    if (!what.empty()) {
      if (++looks_ == kWorthLogging)
        Log(Level::kWarning, "a worker waits", {{"worker", worker_}, {"for", what}});
      return;
    }
    // At the level of the warning it revokes.
    if (std::exchange(looks_, 0) >= kWorthLogging)
      Log(Level::kWarning, "a worker waits no longer", {{"worker", worker_}});
  }

  const std::string worker_;
  int looks_ GUARDED_BY(mutex_) = 0;  // that found the same wait
};

}  // namespace

Result<WorkerReport> RunWorker(store::Store& store, pipeline::Pipeline& pipeline,
                               const WorkerOptions& options, WorkObserver& observer,
                               std::stop_token stop) {
  WorkerWatch watch(observer, options.worker);
  WatchedPipeline watched(pipeline, watch);
  return RunUnwatchedWorker(store, watched.pipeline(), options, watch, std::move(stop));
}

}  // namespace muster::work
