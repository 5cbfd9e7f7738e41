#include <condition_variable>
#include <mutex>
#include <set>
#include <thread>

#include "base/guard.h"
#include "work/circuit.h"
#include "work/slot.h"

namespace muster {
namespace {

using namespace std::chrono_literals;

constexpr auto kLook = 50ms;
// How long a batch in flight is waited for after a stop was requested: what follows must fit into a
// second.
constexpr auto kGrace = 400ms;

// One thread, and how whoever watches it can stop what it does: an item that is no longer ours, and
// everything when the worker is to end.
class WatchedSlot final : public WorkObserver {
 public:
  WatchedSlot(std::unique_ptr<WorkCoordinator> coordinator, WorkObserver& observer)
      : coordinator_(std::move(coordinator)), observer_(observer) {}

  WorkCoordinator& coordinator() { return *coordinator_; }

  StopRequests Next() {
    std::lock_guard lock(mutex_);
    stop_item_ = std::stop_source();
    abort_item_ = std::stop_source();
    lease_ends_ = MonoTime::max();
    if (ending_) stop_item_.request_stop();
    return {stop_item_.get_token(), abort_item_.get_token()};
  }

  void StopItem() {
    std::lock_guard lock(mutex_);
    ending_ = true;
    stop_item_.request_stop();
  }

  void AbortItem() {
    std::lock_guard lock(mutex_);
    abort_item_.request_stop();
  }

  void StopIfLost(MonoTime now) {
    std::lock_guard lock(mutex_);
    if (now < lease_ends_) return;
    stop_item_.request_stop();
    abort_item_.request_stop();
  }

  void Acquired(const WorkItem& item, const Progress& from) override {
    Renewed(item);
    observer_.Acquired(item, from);
  }
  void Advanced(const WorkItem& item, const Progress& progress) override {
    Renewed(item);
    observer_.Advanced(item, progress);
  }
  void Split(const WorkItem& item, const Progress& progress) override {
    observer_.Split(item, progress);
  }
  void Ended(const WorkItem& item, ShardOutcome outcome, const Error* why) override {
    {
      std::lock_guard lock(mutex_);
      lease_ends_ = MonoTime::max();
    }
    observer_.Ended(item, outcome, why);
  }

 private:
  void Renewed(const WorkItem& item) {
    std::lock_guard lock(mutex_);
    lease_ends_ = item.deadline();
  }

  std::unique_ptr<WorkCoordinator> coordinator_;
  WorkObserver& observer_;
  std::mutex mutex_;
  std::stop_source stop_item_;
  std::stop_source abort_item_;
  MonoTime lease_ends_ = MonoTime::max();
  bool ending_ = false;
};

class Worker {
 public:
  Worker(Pipeline& pipeline, const WorkerOptions& options)
      : pipeline_(pipeline), options_(options) {}

  Result<WorkerReport> Run(Store& store, WorkObserver& observer, const std::stop_token& stop) {
    RunSpec run = options_.run;
    const auto circuit = std::make_shared<Circuit>(pipeline_.env, options_.terms.retry_delay);
    for (int i = 0; i < std::max(1, options_.slots); ++i) {
      MUSTER_ASSIGN(auto coordinator,
                    WorkCoordinator::Join(store, pipeline_.env, run, options_.terms,
                                          options_.worker, circuit));
      run.new_incarnation = false;  // once is enough
      slots_.push_back(std::make_unique<WatchedSlot>(std::move(coordinator), observer));
    }
    running_ = slots_.size();
    {
      std::vector<std::jthread> threads;
      for (const auto& slot : slots_) {
        threads.emplace_back([this, &slot] { RunOne(*slot); });
      }
      Watch(stop);
    }
    if (error_) return *error_;
    WorkerReport report{.all_done = all_done_};
    std::set<std::string> quarantined;
    for (const auto& slot : slots_) {
      for (const std::string& name : slot->coordinator().quarantined()) quarantined.insert(name);
    }
    if (all_done_) report.quarantined.assign(quarantined.begin(), quarantined.end());
    return report;
  }

 private:
  void RunOne(WatchedSlot& slot) {
    auto done = GuardedThread("a slot of this worker", [&] {
      return RunSlot(
          slot.coordinator(), pipeline_, options_, slot, [&slot] { return slot.Next(); },
          stop_.get_token());
    });
    std::lock_guard lock(mutex_);
    --running_;
    if (done && *done) all_done_ = true;
    // What one slot cannot get over, the others cannot either.
    if (!done && !error_) error_ = done.error();
    changed_.notify_all();
  }

  // Until all slots have ended.
  void Watch(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    std::optional<MonoTime> stopped_at;
    for (; running_ > 0; changed_.wait_for(lock, kLook)) {
      const MonoTime now = pipeline_.env.MonoNow();
      if (!stopped_at && (stop.stop_requested() || error_)) {
        stopped_at = now;
        stop_.request_stop();
        for (const auto& slot : slots_) slot->StopItem();
      }
      for (const auto& slot : slots_) {
        slot->StopIfLost(now);
        if (stopped_at && now - *stopped_at >= kGrace) slot->AbortItem();
      }
    }
  }

  Pipeline& pipeline_;
  const WorkerOptions& options_;
  std::vector<std::unique_ptr<WatchedSlot>> slots_;
  std::stop_source stop_;
  std::mutex mutex_;
  std::condition_variable changed_;
  size_t running_ = 0;
  bool all_done_ = false;
  std::optional<Error> error_;
};

}  // namespace

Result<WorkerReport> RunWorker(Store& store, Pipeline& pipeline, const WorkerOptions& options,
                               WorkObserver& observer, std::stop_token stop) {
  return Worker(pipeline, options).Run(store, observer, stop);
}

}  // namespace muster
