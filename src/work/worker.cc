#include "work/worker.h"

#include <functional>
#include <set>

#include "core/condition.h"
#include "core/guard.h"
#include "core/mutex.h"
#include "core/planted_bug.h"
#include "work/chosen_records.h"
#include "work/finish_collections.h"
#include "work/observer_wrapper.h"
#include "work/slot.h"

namespace muster::work {
namespace {

using namespace std::chrono_literals;

// A condition wait does not advance while the machine is suspended; the lease does.
constexpr auto kLook = 1s;
constexpr auto kUntilNotified = 1h;
// How long to wait for a batch in flight after a stop request: the rest must fit in a second.
constexpr auto kGrace = 400ms;

// One thread and the means to stop it: for an item that is no longer ours, and for everything when
// the worker ends.
class WatchedSlot final : public WorkObserverWrapper {
 public:
  // `sooner` is called when the lease ends earlier than the watch knows, `failed` when an item has
  // failed.
  WatchedSlot(std::unique_ptr<WorkCoordinator> coordinator, WorkObserver& observer,
              std::function<void()> sooner, std::function<void(const Error&)> failed)
      : WorkObserverWrapper(observer),
        coordinator_(std::move(coordinator)),
        sooner_(std::move(sooner)),
        failed_(std::move(failed)) {}

  WorkCoordinator& coordinator() { return *coordinator_; }

  StopRequests Next() {
    const MutexLock lock(mutex_);
    stop_item_ = std::stop_source();
    abort_item_ = std::stop_source();
    lease_ends_ = MonoTime::max();
    if (ending_) stop_item_.request_stop();
    if (aborting_) abort_item_.request_stop();
    return {stop_item_.get_token(), abort_item_.get_token()};
  }

  void StopItem() {
    const MutexLock lock(mutex_);
    ending_ = true;
    stop_item_.request_stop();
  }

  void AbortItem() {
    const MutexLock lock(mutex_);
    aborting_ = true;
    abort_item_.request_stop();
  }

  // When its lease ends; far in the future if it holds nothing.
  MonoTime StopIfLost(MonoTime now) {
    const MutexLock lock(mutex_);
    if (now < lease_ends_) return lease_ends_;
    lease_ends_ = MonoTime::max();
    if (PLANTED_BUG(lost_items_go_on)) return lease_ends_;
    stop_item_.request_stop();
    abort_item_.request_stop();
    return lease_ends_;
  }

  void Acquired(const WorkItem& item, const pipeline::Progress& from) override {
    LeaseEnds(item.deadline());
    WorkObserverWrapper::Acquired(item, from);
  }
  void Renewed(const WorkItem& item) override {
    if (!PLANTED_BUG(renewals_are_not_noticed)) LeaseEnds(item.deadline());
    WorkObserverWrapper::Renewed(item);
  }
  void Ended(const WorkItem& item, ShardOutcome outcome, const Error* why) override {
    LeaseEnds(MonoTime::max());
    WorkObserverWrapper::Ended(item, outcome, why);
    if (outcome != ShardOutcome::kFailed && outcome != ShardOutcome::kQuarantined) return;
    failed_(why != nullptr ? *why
                           : Error{Code::kInternal, "item '" + item.name() +
                                                        "' was quarantined: its holders disappeared"
                                                        " or failed too often"});
  }

 private:
  // A renewal may shorten it: attempts without progress have longer leases.
  void LeaseEnds(MonoTime end) {
    {
      const MutexLock lock(mutex_);
      std::swap(lease_ends_, end);
      if (lease_ends_ >= end) return;
    }
    sooner_();
  }

  std::unique_ptr<WorkCoordinator> coordinator_;
  const std::function<void()> sooner_;
  const std::function<void(const Error&)> failed_;
  Mutex mutex_;
  std::stop_source stop_item_ GUARDED_BY(mutex_);
  std::stop_source abort_item_ GUARDED_BY(mutex_);
  MonoTime lease_ends_ GUARDED_BY(mutex_) = MonoTime::max();
  bool ending_ GUARDED_BY(mutex_) = false;
  bool aborting_ GUARDED_BY(mutex_) = false;
};

class Worker {
 public:
  Worker(pipeline::Pipeline& pipeline, const WorkerOptions& options)
      : pipeline_(pipeline), options_(options), changed_(pipeline.env) {}

  Result<WorkerReport> Run(store::Store& store, WorkObserver& observer,
                           const std::stop_token& stop) {
    RunSpec run = options_.run;
    const auto state = std::make_shared<WorkerState>(pipeline_.env, options_.terms);
    for (int i = 0; i < std::max(1, options_.slots); ++i) {
      MUSTER_ASSIGN(
          auto coordinator,
          WorkCoordinator::Join(store, pipeline_.env, run, options_.terms, options_.worker, state));
      run.new_incarnation = false;  // once is enough
      slots_.push_back(std::make_unique<WatchedSlot>(
          std::move(coordinator), observer, [this] { Notify(); },
          [this](const Error& error) { ItemFailed(error); }));
    }
    {
      const MutexLock lock(mutex_);
      running_ = slots_.size();
    }
    // At once, so that no further batch is begun; the watch sees to the rest.
    const std::stop_callback pass_on(stop, [this] { StopSlots(); });
    std::vector<std::function<void()>> threads{[this, &stop] { Watch(stop); }};
    for (const auto& slot : slots_) threads.emplace_back([this, &slot] { RunOne(*slot); });
    pipeline_.env.RunAll(std::move(threads));
    const MutexLock lock(mutex_);
    if (error_) return *error_;
    return report_;
  }

 private:
  void RunOne(WatchedSlot& slot) {
    auto done = Guarded("a slot of this worker", [&] {
      return RunSlot(
          slot.coordinator(), pipeline_, options_, slot, [&slot] { return slot.Next(); },
          stop_.get_token());
    });
    // Nothing is left for the others either.
    if (done && *done) stop_.request_stop();
    const MutexLock lock(mutex_);
    --running_;
    if (done && *done) {
      const std::vector<std::string>& names = slot.coordinator().quarantined();
      const std::set<std::string> quarantined(names.begin(), names.end());
      report_ = {.all_done = true, .quarantined = {quarantined.begin(), quarantined.end()}};
    }
    // An error one slot cannot recover from stops the others too.
    if (!done && !error_) error_ = done.error();
    NotifyLocked();
  }

  void ItemFailed(const Error& error) {
    if (!options_.terms.fail_fast) return;
    stop_.request_stop();  // before this slot takes another item
    const MutexLock lock(mutex_);
    if (!error_) error_ = error;
    NotifyLocked();
  }

  void Notify() {
    const MutexLock lock(mutex_);
    NotifyLocked();
  }

  void NotifyLocked() REQUIRES(mutex_) {
    notified_ = true;
    changed_.NotifyAll();
  }

  // Until all slots have ended.
  void Watch(const std::stop_token& stop) {
    std::optional<MonoTime> stopped_at;
    for (bool running = true; running;) {
      const std::chrono::nanoseconds idle = LookAtSlots(stop, stopped_at);
      running = AwaitChange(idle, stopped_at ? std::stop_token() : stop);
    }
  }

  // Stops what has to be stopped. Returns the time until the next check.
  std::chrono::nanoseconds LookAtSlots(const std::stop_token& stop,
                                       std::optional<MonoTime>& stopped_at) {
    const MonoTime now = pipeline_.env.MonoNow();
    if (!stopped_at && (stop.stop_requested() || HasFailed())) {
      stopped_at = now;
      StopSlots();
    }
    MonoTime next = MonoTime::max();
    for (const auto& slot : slots_) next = std::min(next, slot->StopIfLost(now));
    std::chrono::nanoseconds wait = next == MonoTime::max() ? kUntilNotified : next - now;
    if (next != MonoTime::max() && !PLANTED_BUG(suspensions_are_slept_through))
      wait = std::min<std::chrono::nanoseconds>(wait, kLook);
    if (!stopped_at || aborted_) return wait;
    const std::chrono::nanoseconds grace = *stopped_at + kGrace - now;
    if (grace.count() > 0) return std::min(wait, grace);
    aborted_ = true;
    for (const auto& slot : slots_) slot->AbortItem();
    return wait;
  }

  void StopSlots() {
    if (PLANTED_BUG(stops_are_not_passed_on)) return;
    stop_.request_stop();
    for (const auto& slot : slots_) slot->StopItem();
  }

  bool HasFailed() {
    const MutexLock lock(mutex_);
    return error_.has_value();
  }

  // False: all slots have ended.
  bool AwaitChange(std::chrono::nanoseconds timeout, const std::stop_token& stop) {
    MutexLock lock(mutex_);
    if (running_ > 0 && !notified_) changed_.Wait(lock, timeout, stop);
    notified_ = false;
    return running_ > 0;
  }

  pipeline::Pipeline& pipeline_;
  const WorkerOptions& options_;
  std::vector<std::unique_ptr<WatchedSlot>> slots_;
  std::stop_source stop_;
  Mutex mutex_;
  Condition changed_;
  bool notified_ GUARDED_BY(mutex_) = false;
  size_t running_ GUARDED_BY(mutex_) = 0;
  WorkerReport report_ GUARDED_BY(mutex_);
  std::optional<Error> error_ GUARDED_BY(mutex_);
  bool aborted_ = false;  // by the watch
};

}  // namespace

Result<WorkerReport> RunUnwatchedWorker(store::Store& store, pipeline::Pipeline& pipeline,
                                        const WorkerOptions& options, WorkObserver& observer,
                                        std::stop_token stop) {
  ChosenRecords chosen(store, options.run.name, [&] {
    return SelectedCollections(store, options.run.name, pipeline.source, options.allowed);
  });
  pipeline::Pipeline with_chosen = pipeline;
  if (with_chosen.chosen == nullptr) with_chosen.chosen = &chosen;
  return Worker(with_chosen, options).Run(store, observer, stop);
}

}  // namespace muster::work
