#include <optional>
#include <thread>

#include "cli/exit_codes.h"
#include "cli/metered_events.h"
#include "cli/progress.h"
#include "cli/replica_context.h"
#include "cli/signals.h"
#include "cli/terminal.h"
#include "cli/worker_name.h"
#include "core/guard.h"
#include "core/interrupt.h"
#include "core/json.h"
#include "core/mutex.h"

namespace muster::cli {
namespace {

using namespace std::chrono_literals;

constexpr milliseconds kLook = 500ms;
constexpr int kRestFactor = 20;

std::string InWords(const replica::ReplicaEvent& event) {
  const std::string generation = " generation " + std::to_string(event.generation);
  switch (event.kind) {
    case replica::ReplicaEvent::Kind::kRegistered:
      return event.worker + " registers and waits for a place";
    case replica::ReplicaEvent::Kind::kReady:
      return event.worker + " is ready for" + generation;
    case replica::ReplicaEvent::Kind::kRunning:
      return event.worker + " runs partition " + std::to_string(event.partition) + " of " +
             std::to_string(event.partitions) + " in" + generation;
    case replica::ReplicaEvent::Kind::kStandby:
      return event.worker + " stands by";
    case replica::ReplicaEvent::Kind::kReconfigured: {
      milliseconds longest{0};
      for (const auto& [slot, pause] : event.pauses) longest = std::max(longest, pause);
      return event.worker + " owns " + std::to_string(event.pauses.size()) +
             " slots, which paused for " + std::to_string(longest.count()) + " ms at most";
    }
    case replica::ReplicaEvent::Kind::kParked:
      return event.projection + " parks " + event.error;
    case replica::ReplicaEvent::Kind::kLost:
      return event.worker + " starts over: " + event.error;
    case replica::ReplicaEvent::Kind::kTrouble:
      return event.worker + " has trouble: " + event.error;
    case replica::ReplicaEvent::Kind::kStopped:
      return event.worker + " has left";
  }
  return event.worker;
}

// Waiting events of streams that are being replayed.
int64_t Replaying(const replica::InstanceStatus& instance) {
  int64_t events = 0;
  for (const replica::ParkedStream& stream : instance.parked) {
    if (stream.replay) events += std::ssize(stream.versions);
  }
  return events;
}

class Narrator final : public replica::ReplicaObserver {
 public:
  Narrator(MeteredEvents& metered, Progress& progress) : metered_(metered), progress_(progress) {}

  void Happened(const replica::ReplicaEvent& event) override {
    metered_.Take(event);
    progress_.Say(InWords(event));
  }

 private:
  MeteredEvents& metered_;
  Progress& progress_;
};

class ReplicaRun {
 public:
  ReplicaRun(const ReplicaCommandOptions& options, Context& context)
      : options_(options), context_(context) {}

  Result<int> Run() {
    MUSTER_ASSIGN(OpenReplica open, OpenReplica::Open(options_, context_));
    MUSTER_ASSIGN(std::optional<int64_t> earlier, CheckLog(open));
    StopOnSignals signals("");
    const InterruptScope scope(signals.Token());
    std::stop_callback on_signal(signals.Token(), [this] { stop_.request_stop(); });
    progress_.emplace(context_.progress, context_.err, context_.env,
                      "replica " + open.file.options.set, 0, [] { return TerminalWidth(2); });
    if (earlier) SetEarlier(*earlier);
    DashboardBeside dashboard(context_, "muster replica run", options_.serve);
    const std::unique_ptr<store::Store> store = dashboard.Metered(*open.store);
    MUSTER_TRY(
        dashboard.Start(open.file.store.value_or(context_.store), *open.store, options_.file));
    MeteredEvents metered(open.file.options.set, dashboard.metrics(), dashboard.tracer(),
                          context_.env);
    Narrator narrator(metered, *progress_);
    std::vector<std::unique_ptr<replica::Orchestrator>> workers;
    replica::ReplicaOptions options = open.file.options;
    const std::string name = options_.name.empty() ? DefaultWorkerName() : options_.name;
    for (int i = 1; i <= options_.workers; ++i) {
      options.worker = options_.workers == 1 ? name : name + "." + std::to_string(i);
      MUSTER_ASSIGN(auto worker, replica::NewOrchestrator(*store, *open.log, open.file.read_model,
                                                          open.file.projections, options, narrator,
                                                          context_.env));
      workers.push_back(std::move(worker));
    }
    std::vector<std::jthread> threads;
    for (const auto& worker : workers) {
      threads.emplace_back([this, &worker] { RunOne(*worker); });
    }
    Watch(open);
    threads.clear();
    progress_->Finish();
    const MutexLock lock(mutex_);
    if (failure_) return *failure_;
    if (!options_.until_caught_up) return kDone;
    if (!is_caught_up_) {
      return Error{Code::kCancelled, "stopped before set " + open.file.options.set + " caught up",
                   "the same command continues"};
    }
    if (context_.json) {
      context_.out << ToJsonText(Json{{"set", open.file.options.set},
                                      {"handled", handled_},
                                      {"parked", parked_}})
                   << '\n';
    } else if (parked_ > 0) {
      context_.err << parked_ << " events are parked; 'muster replica status' shows why\n";
    }
    return parked_ > 0 ? kDoneWithRejects : kDone;
  }

 private:
  void RunOne(replica::Orchestrator& worker) {
    const Status ended = GuardedThread("a worker", [&] { return worker.Run(stop_.get_token()); });
    if (!ended) Fail(ended.error());
  }

  void Fail(Error error) {
    const MutexLock lock(mutex_);
    failure_ = std::move(error);
    stop_.request_stop();
  }

  static Result<replica::SetStatus> Look(OpenReplica& open) {
    std::vector<std::string> names;
    for (const auto& projection : open.file.projections) names.push_back(projection->name());
    return replica::StatusOf(*open.store, *open.log, *open.model, open.file.options.set, names);
  }

  static int64_t HandledIn(const replica::SetStatus& status) {
    int64_t handled = 0;
    for (const replica::InstanceStatus& instance : status.instances) handled += instance.handled;
    return handled;
  }

  // Returns how many events were handled before. None: unknown, for workers wait for databases that
  // are unreachable.
  static Result<std::optional<int64_t>> CheckLog(OpenReplica& open) {
    const auto status = Look(open);
    if (!status) return std::nullopt;
    MUSTER_TRY(replica::CheckSameLog(*status));
    return HandledIn(*status);
  }

  void SetEarlier(int64_t handled) {
    progress_->SetEarlier(static_cast<uint64_t>(handled));
    knows_earlier_ = true;
  }

  static Error PausedError(const replica::InstanceStatus& instance) {
    return {Code::kConflict,
            "projection '" + instance.projection + "' is paused and cannot catch up",
            "resume it first"};
  }

  // Shows the set's progress until stopped or caught up.
  void Watch(OpenReplica& open) {
    const bool watched = options_.until_caught_up || context_.progress != ProgressMode::kNone;
    milliseconds pause = kLook;
    while (context_.env.Sleep(pause, stop_.get_token())) {
      if (!watched) continue;
      const MonoTime began = context_.env.MonoNow();
      const auto status = Look(open);
      // However long a look takes, leave the databases alone most of the time.
      pause = std::max<milliseconds>(
          kLook, std::chrono::ceil<milliseconds>(context_.env.MonoNow() - began) * kRestFactor);
      if (!status) continue;
      if (const Status whole_log = replica::CheckSameLog(*status); !whole_log)
        Fail(whole_log.error());
      handled_ = HandledIn(*status);
      if (!knows_earlier_) SetEarlier(handled_);
      int64_t left = 0;
      parked_ = 0;
      bool whole = true;
      for (const replica::InstanceStatus& instance : status->instances) {
        if (options_.until_caught_up && instance.paused) Fail(PausedError(instance));
        left += instance.unread + Replaying(instance);
        parked_ += instance.parked_events;
        whole &= instance.slots.size() == static_cast<size_t>(open.log->slots());
      }
      progress_->Update(static_cast<uint64_t>(handled_), static_cast<uint64_t>(handled_ + left));
      is_caught_up_ = whole && left == 0;
      if (options_.until_caught_up && is_caught_up_) stop_.request_stop();
    }
  }

  const ReplicaCommandOptions& options_;
  Context& context_;
  std::stop_source stop_;
  std::optional<Progress> progress_;
  bool knows_earlier_ = false;  // how many events were handled before
  bool is_caught_up_ = false;   // at the last look
  int64_t handled_ = 0;         // events, at the last look
  int64_t parked_ = 0;
  Mutex mutex_;
  std::optional<Error> failure_ GUARDED_BY(mutex_);
};

}  // namespace

Result<int> RunReplicaWorkers(const ReplicaCommandOptions& options, Context& context) {
  return ReplicaRun(options, context).Run();
}

}  // namespace muster::cli
