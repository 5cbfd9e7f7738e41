#include "work/slot.h"

#include "core/log.h"
#include "work/records.h"

namespace muster::work {
namespace {

// What is neither the source's nor the sink's is the store's.
std::string WhatIsWaitedFor(const Error& error) {
  const bool is_store = error.party == Party::kNone;
  return "the " + std::string(is_store ? "store" : PartyName(error.party)) + ": " + error.message;
}

class Slot {
 public:
  Slot(WorkCoordinator& coordinator, pipeline::Pipeline& pipeline, const WorkerOptions& options,
       WorkObserver& observer, const NextStops& next_stops, std::stop_token stop)
      : coordinator_(coordinator),
        pipeline_(pipeline),
        options_(options),
        observer_(observer),
        next_stops_(next_stops),
        stop_(std::move(stop)) {}

  Result<bool> Run() {
    while (!stop_.stop_requested()) {
      if (!prepared_) MUSTER_TRY(Prepare());
      if (!coordinator_.circuit().Await(stop_) || !coordinator_.pass().Enter(stop_)) break;
      auto outcome =
          MigrateNextShard(coordinator_, pipeline_, options_.allowed, observer_, next_stops_());
      coordinator_.pass().Leave();
      coordinator_.circuit().Settled();
      if (outcome && *outcome != ShardOutcome::kNothingDue) prepare_waits_.clear();
      std::string waits = coordinator_.circuit().WaitsFor();
      if (waits.empty()) waits = prepare_waits_;
      const bool is_idle = outcome && *outcome == ShardOutcome::kNothingDue;
      if (waits.empty() && is_idle) waits = coordinator_.HeldByOthers();
      // An idle slot says nothing about what the others wait for.
      if (!is_idle || !waits.empty() || said_wait_) observer_.Waits(waits);
      said_wait_ = !waits.empty();
      if (!outcome) {
        // The store of a run that is alone never fails, so this is the source or the sink.
        if (!IsTransient(outcome.error().code) || coordinator_.alone()) return outcome.error();
        Pause("could not acquire an item; retrying", outcome.error());
      } else if (*outcome == ShardOutcome::kAllDone && !options_.forever) {
        return true;
      } else if (*outcome == ShardOutcome::kAllDone || *outcome == ShardOutcome::kNothingDue) {
        coordinator_.store().Wait(kWorkKind, coordinator_.terms().idle_wait, stop_);
        // A store that lost commits may have forgotten the preparation, and nothing else checks.
        prepared_ = false;
      }
    }
    return false;
  }

 private:
  // Others may already have created items, so a failure does not stop this slot; but the first
  // attempt is not retried forever: a sink that does not exist never will.
  Status Prepare() {
    auto prepared = PrepareWork(coordinator_, pipeline_, options_.allowed, stop_);
    if (prepared) {
      prepared_ = *prepared;
      was_prepared_ |= *prepared;
      if (*prepared) prepare_waits_.clear();
      return {};
    }
    const bool outage =
        was_prepared_ && prepared.error().party != Party::kNone && IsOutage(prepared.error());
    if (!IsTransient(prepared.error().code) && !outage) return prepared.error();
    if (!was_prepared_ && ++failures_ >= coordinator_.terms().max_attempts) return prepared.error();
    prepare_waits_ = WhatIsWaitedFor(prepared.error());
    Pause("could not prepare the run; retrying", prepared.error());
    return {};
  }

  void Pause(std::string_view what, const Error& error) {
    Log(Level::kWarning, what, {{"worker", coordinator_.worker()}, {"error", error.ToString()}});
    observer_.Waits(WhatIsWaitedFor(error));
    const milliseconds wait = coordinator_.terms().idle_wait;
    coordinator_.env().Sleep(wait + coordinator_.env().Jitter(wait), stop_);
  }

  WorkCoordinator& coordinator_;
  pipeline::Pipeline& pipeline_;
  const WorkerOptions& options_;
  WorkObserver& observer_;
  const NextStops& next_stops_;
  const std::stop_token stop_;
  bool prepared_ = false;
  bool was_prepared_ = false;  // source and sink have been verified
  int failures_ = 0;
  std::string prepare_waits_;  // what the preparation waits for
  bool said_wait_ = false;     // by this slot, to the observer
};

}  // namespace

Result<bool> RunSlot(WorkCoordinator& coordinator, pipeline::Pipeline& pipeline,
                     const WorkerOptions& options, WorkObserver& observer,
                     const NextStops& next_stops, std::stop_token stop) {
  return Slot(coordinator, pipeline, options, observer, next_stops, std::move(stop)).Run();
}

}  // namespace muster::work
