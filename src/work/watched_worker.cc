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
      : observer_(observer), worker_(std::move(worker)) {}

  void Acquired(const WorkItem& item, const pipeline::Progress& from) override {
    observer_.Acquired(item, from);
  }
  void Advanced(const WorkItem& item, const pipeline::Progress& progress) override {
    {
      const MutexLock lock(mutex_);
      NoteProgress();
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

 private:
  void ReportWait(const std::string& what) REQUIRES(mutex_) override { observer_.Waits(what); }

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

  WorkObserver& observer_;
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
