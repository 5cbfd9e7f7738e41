#include <algorithm>
#include <map>
#include <thread>

#include "core/backoff.h"
#include "core/condition.h"
#include "core/guard.h"
#include "core/log.h"
#include "core/mutex.h"
#include "replica/orchestrator.h"
#include "replica/worker.h"

namespace muster::replica {
namespace {

constexpr milliseconds kShortestCall{10'000};  // limit of a call to the read model

using std::chrono::nanoseconds;

constexpr milliseconds kIdleWait{200};
constexpr milliseconds kFirstPause{50};
constexpr milliseconds kLongestPause{2'000};
// However often others signal, poll no more often than this.
constexpr milliseconds kShortestRest{20};

// One thread per follower.
class ThreadRunner final : public FollowerRunner {
 public:
  ThreadRunner(store::Store& store, events::EventLog& log, Env& env)
      : store_(store), log_(log), env_(env) {}

  void SetWorker(const Worker& worker) { worker_ = &worker; }

  bool HaveThreads() const override { return true; }

  void Start(Follower& follower) override {
    auto running = std::make_unique<FollowerThread>(env_);
    FollowerThread* own = running.get();
    running->thread = std::jthread(
        [this, own, &follower](std::stop_token stop) { Work(*own, follower, std::move(stop)); });
    threads_[&follower] = std::move(running);
  }

  bool Take(Follower& follower, milliseconds patience) override {
    const auto found = threads_.find(&follower);
    if (found == threads_.end()) return true;
    FollowerThread& running = *found->second;
    running.thread.request_stop();
    if (!AwaitEnd(running, patience)) return false;
    threads_.erase(found);  // joins
    return true;
  }

  void Wait(nanoseconds duration, std::stop_token stop) override {
    if (!env_.Sleep(kShortestRest, stop)) return;
    const auto left = std::chrono::floor<milliseconds>(duration) - kShortestRest;
    if (left.count() > 0) store_.Wait(kReplicaKind, left, stop);
  }

  std::optional<Error> Failure(Follower& follower) override {
    const auto found = threads_.find(&follower);
    if (found == threads_.end()) return std::nullopt;
    const MutexLock lock(found->second->mutex);
    return std::exchange(found->second->failure, std::nullopt);
  }

 private:
  struct FollowerThread {
    explicit FollowerThread(Env& env) : ended(env) {}
    Mutex mutex;
    Condition ended;
    bool done GUARDED_BY(mutex) = false;
    std::optional<Error> failure GUARDED_BY(mutex);
    std::jthread thread;  // destroyed first
  };

  static bool AwaitEnd(FollowerThread& running, milliseconds patience) {
    MutexLock lock(running.mutex);
    return running.ended.WaitFor(lock, patience, {},
                                 [&]() REQUIRES(running.mutex) { return running.done; });
  }

  void Work(FollowerThread& running, Follower& follower, std::stop_token stop) {
    Backoff backoff(env_, stop, {.first = kFirstPause, .longest = kLongestPause});
    while (!stop.stop_requested()) {
      // Past the deadline others may own our slots. The fence would refuse the work anyway; this
      // saves it.
      if (env_.MonoNow().time_since_epoch().count() >= worker_->DeadlineNs()) {
        env_.Sleep(kFirstPause, stop);
        continue;
      }
      auto outcome = GuardedThread("a follower", [&] { return follower.Step(stop); });
      if (outcome) {
        backoff.Reset();
        if (*outcome == Follower::Outcome::kIdle) log_.Wait(kIdleWait, stop);
        continue;
      }
      if (outcome.error().code == Code::kCancelled) continue;
      {
        const MutexLock lock(running.mutex);
        running.failure = outcome.error();
      }
      if (outcome.error().code == Code::kLeaseLost) break;
      backoff.Pause();
    }
    const MutexLock lock(running.mutex);
    running.done = true;
    running.ended.NotifyAll();
  }

  store::Store& store_;
  events::EventLog& log_;
  Env& env_;
  const Worker* worker_ = nullptr;
  std::map<Follower*, std::unique_ptr<FollowerThread>> threads_;
};

class ThreadedOrchestrator final : public Orchestrator {
 public:
  ThreadedOrchestrator(store::Store& store, events::EventLog& log, std::unique_ptr<ReadModel> model,
                       std::vector<std::shared_ptr<Projection>> projections,
                       const ReplicaOptions& options, ReplicaObserver& observer, Env& env)
      : model_(std::move(model)),
        threads_(store, log, env),
        worker_(store, log, *model_, std::move(projections), options, observer, threads_, env) {
    threads_.SetWorker(worker_);
  }

  Status Run(std::stop_token stop) override { return worker_.Run(std::move(stop)); }

 private:
  const std::unique_ptr<ReadModel> model_;
  ThreadRunner threads_;
  Worker worker_;
};

Status CheckOptions(const ReplicaOptions& options,
                    const std::vector<std::shared_ptr<Projection>>& projections) {
  MUSTER_TRY(CheckReplicaName("replica set", options.set));
  if (!options.worker.empty()) MUSTER_TRY(CheckReplicaName("worker", options.worker));
  if (projections.empty()) {
    return Error{Code::kInvalid, "replica set '" + options.set + "' has no projections"};
  }
  std::set<std::string> names;
  for (const auto& projection : projections) {
    MUSTER_TRY(CheckReplicaName("projection", projection->name()));
    if (!names.insert(projection->name()).second) {
      return Error{Code::kInvalid, "projection '" + projection->name() + "' occurs twice"};
    }
  }
  const auto invalid = [](const char* what) { return Error{Code::kInvalid, what}; };
  if (options.heartbeat_interval.count() < 1)
    return invalid("the heartbeat's interval is not positive");
  if (options.heartbeat_timeout < options.heartbeat_interval * 2) {
    return invalid("the heartbeat's timeout is less than twice its interval");
  }
  if (options.quiet > options.quiet_most) return invalid("quiet is longer than quiet_most");
  if (options.batch < 1 || options.batch > events::kMaxEventBatch)
    return invalid("batch is outside 1..10000");
  if (options.max_attempts < 1) return invalid("max_attempts is less than 1");
  return {};
}

}  // namespace

Result<std::shared_ptr<Projection>> Projection::WithDefinition(const std::string&) const {
  return Error{Code::kIncompatible,
               "projection '" + name() + "' cannot run with a definition other than its own",
               "start the worker with the program or file that the version was built from"};
}

Result<std::unique_ptr<Orchestrator>> NewOrchestratorOn(
    store::Store& store, events::EventLog& events, std::unique_ptr<ReadModel> model,
    std::vector<std::shared_ptr<Projection>> projections, const ReplicaOptions& options,
    ReplicaObserver& observer, Env& env) {
  MUSTER_TRY(CheckOptions(options, projections));
  return std::make_unique<ThreadedOrchestrator>(store, events, std::move(model),
                                                std::move(projections), options, observer, env);
}

Result<std::unique_ptr<Orchestrator>> NewOrchestrator(
    store::Store& store, events::EventLog& events, const std::string& read_model,
    std::vector<std::shared_ptr<Projection>> projections, const ReplicaOptions& options,
    ReplicaObserver& observer, Env& env) {
  MUSTER_TRY(CheckOptions(options, projections));
  // Calls of a processor end earlier if they have to, before it counts as hung: see
  // Follower::NoteBusy. A commit may take all of it.
  const milliseconds usual = std::max(kShortestCall, options.handle_timeout / 6);
  MUSTER_ASSIGN(auto model, OpenReadModel(read_model, env,
                                          {.usual = usual,
                                           .longest = std::max(usual, options.handle_timeout)}));
  return NewOrchestratorOn(store, events, std::move(model), std::move(projections), options,
                           observer, env);
}

}  // namespace muster::replica
